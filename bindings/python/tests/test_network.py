"""Networks and streams, as a tool uses them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy
import pytest
import sapwood

from conftest import FOLDER, HANG, PYTHON_NODE, TOPOLOGIES, WORKER, Opener


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_question_is_answered_by_all_as_one(opened: Opener, topology: str) -> None:
    network = opened(topology)
    count = len(network.everyone)
    stream = network.stream(up="sum")
    for wave in range(3):
        answer = stream.ask("rank", timeout=HANG)
        assert answer.value == count * (count - 1) // 2
        assert (answer.question, answer.format, answer.tag) == (wave, "%ld", sapwood.FIRST_TAG)
        assert answer.is_complete and not answer.is_late and answer.missing == []
        assert answer.contributors == network.everyone
        assert list(answer.contributors) == list(range(count))


def test_a_stream_is_iterated_and_reaches_some(opened: Opener) -> None:
    network = opened("2x2")
    with network.stream("1-2", up="concatenate", wave="all") as stream:
        assert str(stream.members) == "1-2" and stream.network is network
        for _ in range(3):
            stream.send("rank")
        ranks = []
        for answer in stream:
            ranks.append(list(answer.values[0]))
            if len(ranks) == 3:
                break
        assert ranks == [[1, 2]] * 3
        assert stream.try_recv() is None
    assert stream.closed and list(stream) == []
    alone = network.stream([0, 3], wave="immediate")
    alone.send("rank", to=3)
    assert alone.recv(HANG).value == 3
    alone.send("rank", to=[])
    alone.send("rank", to=0)
    assert alone.recv(HANG).value == 0
    assert alone.try_recv() is None
    alone.send("rank", to=None)
    assert sorted(alone.recv(HANG).value for _ in range(2)) == [0, 3]


def test_a_wave_may_go_on_without_the_silent(opened: Opener) -> None:
    network = opened("2x2")
    stream = network.stream(up="sum", wave=0.3)
    stream.send("rank", to="0-2")
    stream.send("silent", to=3)
    answer = stream.recv(HANG)
    assert answer.value == 3
    assert [str(missing.ranks) for missing in answer.missing] == ["3"]
    assert answer.missing[0].reason and not answer.is_complete
    assert "without '3'" in repr(answer)


def test_a_back_end_that_dies_is_named(opened: Opener) -> None:
    network = opened("2", recovery=False)
    stream = network.stream(up="sum")
    stream.send("die", to=1)
    stream.send("rank", to=0)
    answer = stream.recv(HANG)
    assert answer.value == 0 and str(answer.missing[0].ranks) == "1"
    until = time.monotonic() + HANG
    kinds: list[str] = []
    while "lost" not in kinds:
        assert time.monotonic() < until
        network.turn(0.1)
        for event in network.events():
            kinds.append(event.kind)
            if event.kind == "lost":
                assert event.back_ends is not None and list(event.back_ends) == [1]
                assert "lost" in repr(event)
    stream.send("die", to=0)
    with pytest.raises(sapwood.NoMemberLeftError) as raised:
        stream.recv(HANG)
        stream.recv(HANG)
    assert raised.value.missing


@pytest.mark.parametrize("topology", ["1", "1x1"])
def test_a_send_ends_when_no_back_end_is_left(opened: Opener, topology: str) -> None:
    stream = opened(topology).stream(up="sum")
    stream.send("die", to=0)
    # More than a process keeps of a stream.
    load = numpy.zeros(140_000)
    with pytest.raises(sapwood.NoMemberLeftError) as raised:
        for _ in range(8):
            stream.send("rank", load)
    assert raised.value.missing


def test_a_program_that_fails_is_quoted_and_nothing_is_left() -> None:
    with pytest.raises(sapwood.StartError, match="fails on purpose") as raised:
        sapwood.Network("2x2", [*WORKER, "fail"], startup_timeout=HANG)
    rank, words = raised.value.failures[0]
    assert rank in range(4) and "fails on purpose" in words


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(sapwood.TopologyError, match="4x"):
        sapwood.Network("4x", WORKER)
    assert issubclass(sapwood.TopologyError, ValueError)
    with pytest.raises(sapwood.SapwoodError, match="/nowhere/worker"):
        sapwood.Network("2", "/nowhere/worker")
    with pytest.raises(sapwood.SapwoodError, match="/nowhere/sapwood"):
        sapwood.Network("2", WORKER, node_program="/nowhere/sapwood")
    with pytest.raises(ValueError, match="transport: 'wire'"):
        sapwood.Network("2", WORKER, transport="wire")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'patience' is no term"):
        sapwood.Network("2", WORKER, recovery={"patience": 1.0})
    with pytest.raises(ValueError, match="no number of seconds"):
        sapwood.Network("2", WORKER, startup_timeout=-1.0)
    with pytest.raises(OSError):
        sapwood.Network(tmp_path / "none", WORKER)


def test_settings_reach_the_tree(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "tree"
    file.write_text("localhost:0 => localhost:1 localhost:2 ;\n")
    terms = {"grace": 1.0, "orphan_limit": 1.0}
    network = opened(
        file, environment={"COLOUR": "green"}, transport="tcp", encryption=True, recovery=terms
    )
    assert network.stream(0).ask("environment", "COLOUR", timeout=HANG).value == "green"
    roles = {rank: (role, parent) for rank, role, parent, _ in network.tree}
    assert roles[2] == ("front-end", None) and roles[0] == ("back-end", 2)
    assert "2" in repr(network.stream()) or True
    assert repr(network) == "<sapwood.Network of 3 processes, open>"


def test_the_programs_are_those_that_were_installed() -> None:
    assert Path(sapwood.binary()).name == "sapwood"
    assert sapwood.node_program() == [sapwood.binary() + "-node"]


def test_status_and_places(opened: Opener) -> None:
    network = opened("2x2")
    status = network.status(HANG)
    assert status.health in ("full", "degraded") and len(status.nodes) == 7
    assert [node.role for node in status.nodes].count("back-end") == 4
    root = status.nodes[0]
    assert root.parent is None and root.record is not None and root.record["connected"] == 4
    assert network.attach_points == []
    assert status.took < HANG and "7 processes" in repr(status)


def test_back_ends_attach_by_themselves_in_threads(tmp_path: Path) -> None:
    import threading

    network = sapwood.Network("2", None)
    with network:
        points = network.attach_points
        assert sum(len(point.ranks) for point in points) == 2
        file, key = tmp_path / "attach", tmp_path / "key"
        network.write_attach_file(file, key)
        seen: list[int] = []

        def leaf(rank: int) -> None:
            with sapwood.BackEnd.attach(file, rank) as back_end:
                for packet in back_end:
                    back_end.reply(packet, packet.value * (back_end.rank + 1))
                seen.append(back_end.rank)

        threads = [threading.Thread(target=leaf, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        network.wait_for_back_ends(2, HANG)
        assert network.stream(up="sum").ask(7, timeout=HANG).value == 7 + 14
    for thread in threads:
        thread.join(HANG)
    assert sorted(seen) == [0, 1]


def test_an_exception_ends_the_network(opened: Opener) -> None:
    with pytest.raises(ZeroDivisionError):
        with opened("2x2") as network:
            network.stream(up="sum").ask("rank", timeout=HANG)
            raise ZeroDivisionError
    assert network.closed


def test_communication_processes_may_be_python(opened: Opener) -> None:
    network = opened("2x2", node_program=PYTHON_NODE)
    assert network.stream(up="sum").ask("rank", timeout=HANG).value == 6


def test_a_rank_set_is_a_set() -> None:
    ranks = sapwood.RankSet("0-3,7")
    assert len(ranks) == 5 and 7 in ranks and 4 not in ranks and "7" not in ranks
    assert list(ranks) == [0, 1, 2, 3, 7] and str(ranks) == "0-3,7"
    assert ranks | 4 == sapwood.RankSet([0, 1, 2, 3, 4, 7])
    assert str(ranks & "2-9") == "2-3,7" and str(ranks - [0, 7]) == "1-3"
    assert not sapwood.RankSet() and hash(ranks) == hash(sapwood.RankSet(ranks))
    with pytest.raises(sapwood.ValuesError, match="no rank set"):
        sapwood.RankSet("three")
    with pytest.raises(TypeError, match="names no ranks"):
        sapwood.RankSet(1.5)  # type: ignore[arg-type]


def test_the_benchmark_says_how_python_and_rust_compare() -> None:
    import json
    import subprocess

    words = ["-m", "sapwood.bench", "--topology", "2", "--rounds", "100", "--json"]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=HANG)
    figures = json.loads(ran.stdout)
    assert figures["rounds"] == 100 and figures["ratio"] > 0
    assert figures["python_microseconds"]["median"] > 0


EXAMPLES = [
    FOLDER.parents[2] / "examples/python/add.py",
    *sorted((FOLDER.parent / "examples").glob("*.py")),
]


def test_the_examples_run() -> None:
    import subprocess

    for example in EXAMPLES:
        ran = subprocess.run(
            [sys.executable, str(example)], capture_output=True, text=True, timeout=HANG
        )
        assert ran.returncode == 0, f"{example.name}: {ran.stderr}"
        assert ran.stdout.strip(), example.name

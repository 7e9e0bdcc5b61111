"""Calls that make no sense, and calls at a bad time: each is answered by an error of its kind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import sapwood

from conftest import FOLDER, HANG, Opener, wait_until_awaited


def test_what_is_closed_says_so(opened: Opener) -> None:
    network = opened("2")
    stream, other = network.stream(up="sum"), network.stream()
    stream.close()
    stream.close()
    for use in (stream.recv, stream.try_recv, lambda: stream.send(1), lambda: stream.ask(1), stream.fileno):
        with pytest.raises(sapwood.ClosedError, match="the stream is closed"):
            use()
    network.close()
    network.close()
    assert network.closed and other.closed
    uses: list[Callable[[], object]] = [
        network.stream,
        network.turn,
        network.events,
        network.status,
        network.flush,
        network.fileno,
        lambda: network.everyone,
        other.recv,
        lambda: other.send(1),
    ]
    for use in uses:
        with pytest.raises(sapwood.ClosedError, match="network is closed"):
            use()
    other.close()


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        ({}, ValueError, "give a shape, a topology file, or hosts"),
        ({"hosts": "elsewhere[1-"}, sapwood.TopologyError, r"elsewhere\[1-"),
        ({"hosts": []}, sapwood.TopologyError, "host"),
        ({"hosts": 7}, TypeError, "give a nodeset"),
        ({"hosts": "elsewhere[1-3]", "topology": "2"}, sapwood.TopologyError, "3 hosts"),
        ({"hosts": "elsewhere", "topology": FOLDER / "worker.py"}, ValueError, "give one of both"),
        ({"hosts": "elsewhere", "launcher": "rsh"}, ValueError, "no launcher 'rsh'"),
        ({"hosts": "elsewhere", "launcher": "attach"}, ValueError, "attach file"),
        ({"hosts": "elsewhere", "connect_timeout": -1.0}, ValueError, "connect_timeout"),
    ],
)
def test_hosts_that_are_none_are_refused(
    arguments: dict[str, object], kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        sapwood.Network(back_end=[sys.executable], **arguments)  # type: ignore[arg-type]


def test_a_program_that_does_not_exist_is_a_file_that_is_not_found() -> None:
    for missing in ("/no/such/program", "no-such-program-anywhere"):
        with pytest.raises(FileNotFoundError, match=missing) as caught:
            sapwood.Network("2", [missing])
        assert isinstance(caught.value, sapwood.SapwoodError)


def test_a_wait_has_an_end(opened: Opener) -> None:
    stream = opened("2").stream(up="sum")
    with pytest.raises(TimeoutError, match="no answer within 50 ms"):
        stream.recv(0.05)
    with pytest.raises(ValueError, match="no number of seconds"):
        stream.recv(float("nan"))


def test_what_a_stream_cannot_have_is_refused(opened: Opener) -> None:
    network = opened("2")
    with pytest.raises(sapwood.FilterError, match="'summ' is not known"):
        network.stream(up="summ")
    with pytest.raises(sapwood.MisuseError, match="rank 9 is not a connected back-end"):
        network.stream([0, 9])
    with pytest.raises(sapwood.MisuseError, match="communicator of the stream is empty"):
        network.stream([])
    with pytest.raises(ValueError, match="no rule"):
        network.stream(wave="soon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="policy"):
        network.stream(policy="lose")  # type: ignore[arg-type]
    with pytest.raises(sapwood.MisuseError, match="rank 1 is no member"):
        network.stream(0).send("rank", to=1)


def test_tags_that_are_the_networks_own_are_refused(opened: Opener) -> None:
    stream = opened("2").stream(up="sum")
    for tag in (sapwood.FIRST_TAG - 1, 1, 0, -1):
        for to in (None, 0, [0, 1]):
            with pytest.raises(sapwood.MisuseError, match=f"tag {tag} is the network's own"):
                stream.send("rank", tag=tag, to=to)
    assert stream.ask("tags", timeout=HANG).value == 2


def test_values_that_there_is_no_memory_for_are_not_sent(opened: Opener) -> None:
    stream = opened("2").stream(up="sum")
    # More than earlier tests can have left free in this process.
    values = numpy.zeros(50_000_000)
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + (32 << 20), before[1])
    )
    try:
        with pytest.raises(MemoryError, match="out of memory: 400000008 bytes"):
            stream.send("silent", values)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert stream.ask("rank", timeout=HANG).value == 1


def test_two_threads_are_not_let_in_at_once_but_one_after_another(opened: Opener, tmp_path: Path) -> None:
    network = opened("2")
    go = tmp_path / "go"
    stream = network.stream(up="sum")
    outcome: list[object] = []

    def wait() -> None:
        outcome.append(stream.ask("until", str(go), timeout=HANG).value)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until_awaited(go)
    with pytest.raises(sapwood.ThreadError, match="one thread at a time"):
        stream.try_recv()
    for use in (network.flush, lambda: stream.send("rank"), network.close, network.stream):
        with pytest.raises(sapwood.ThreadError):
            use()
    go.touch()
    thread.join()
    assert outcome == [1]
    # Afterwards this thread may use it again.
    assert stream.ask("rank", timeout=HANG).value == 1


def test_a_forked_child_is_refused_and_harms_nothing(opened: Opener) -> None:
    network = opened("2x2")
    stream = network.stream(up="sum")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        words = []
        for use in (lambda: stream.send("rank"), stream.recv, network.close, network.status):
            try:
                use()
                words.append("nothing")
            except sapwood.ForkedError:
                words.append("forked")
            except BaseException as error:
                words.append(repr(error))
        del stream, network, use
        os.write(writer, " ".join(words).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"forked forked forked forked"
    os.close(reader)
    os.close(writer)
    assert stream.ask("rank", timeout=HANG).value == 6


SCRIPT = """
import sys, sapwood
network = sapwood.Network({topology!r}, {worker!r}, startup_timeout=60)
stream = network.stream(up="sum")
try:
    print("waiting", flush=True)
    stream.recv()
except KeyboardInterrupt:
    print("interrupted", stream.ask("rank", timeout=60).value, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["network.close()", "", "raise RuntimeError", "sys.exit(0)"])
def test_an_interrupt_ends_a_wait_and_however_it_ends_nothing_is_left(end: str) -> None:
    worker = [sys.executable, str(FOLDER / "worker.py")]
    script = SCRIPT.format(topology="2x2", worker=worker, end=end)
    tool = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None
    assert tool.stdout.readline() == "waiting\n"
    tool.send_signal(signal.SIGINT)
    out, err = tool.communicate(timeout=HANG)
    assert out == "interrupted 6\n", err
    assert (tool.returncode != 0) == ("RuntimeError" in end)


def test_a_handler_of_the_tools_runs_while_it_waits(opened: Opener) -> None:
    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    stream = opened("2").stream(up="sum")
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Alarm):
            stream.recv(HANG)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stream.ask("rank", timeout=HANG).value == 1


def test_other_threads_run_while_one_waits(opened: Opener, tmp_path: Path) -> None:
    stream = opened("2").stream(up="sum")
    go = tmp_path / "go"

    def let_go() -> None:
        # Only where the thread that waits for the answer lets others run.
        wait_until_awaited(go)
        go.touch()

    thread = threading.Thread(target=let_go)
    thread.start()
    assert stream.ask("until", str(go), timeout=HANG).value == 1
    thread.join()


def test_a_process_that_no_network_started_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(sapwood.SystemError, match="not part of a network"):
        sapwood.BackEnd.from_environment()
    with pytest.raises(sapwood.FileError, match="none"):
        sapwood.BackEnd.attach(tmp_path / "none")


def test_a_dropped_stream_is_closed(opened: Opener) -> None:
    network = opened("2")
    for _ in range(20):
        assert network.stream(up="sum").ask("rank", timeout=HANG).value == 1
    network.flush()
    record = network.status(HANG).nodes[0].record
    assert record is not None and record["streams"] == 0

"""Python callables as filters in the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import sapwood

from conftest import FOLDER, HANG, PYTHON_NODE, WORKER, Opener, children, wait_until_gone


@pytest.fixture
def tree(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> Iterator[sapwood.Network]:
    """A tree whose communication processes run Python, and find `merges.py`."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield opened("2x2", node_program=PYTHON_NODE)


def asked(network: sapwood.Network, up: Any, *values: Any) -> sapwood.Answer:
    with network.stream(up=up) as stream:
        return stream.ask(*(values or ("rank",)), timeout=HANG)


def test_a_callable_merges_what_its_children_send(tree: sapwood.Network) -> None:
    assert asked(tree, "python:merges:total").value == 6
    assert asked(tree, ("python:merges:scaled", 10)).value == 60
    merged = asked(tree, "python:merges:arrays", "array", 3, "f4")
    assert merged.value.dtype == numpy.float32 and list(merged.value) == [4.0] * 3
    # Beside one of the tree's own.
    assert asked(tree, ["python:merges:total", "count"]).value == 4


def test_it_is_told_where_it_is(tree: sapwood.Network) -> None:
    texts = asked(tree, "python:merges:report").value
    assert texts == ["5:0-1:2:False", "6:2-3:2:False", "4:0-3:2:True"]


def test_what_it_raises_fails_that_wave_and_no_other(tree: sapwood.Network) -> None:
    neighbour = tree.stream(up="sum")
    with tree.stream(up="python:merges:failing") as stream:
        for wave in range(4):
            answer = stream.ask("rank", timeout=HANG)
            if wave % 2:
                with pytest.raises(sapwood.NoValueError) as raised:
                    assert answer.value
                assert f"ValueError: wave {wave} is odd (merges.py:" in str(raised.value)
                assert raised.value.missing and not answer.has_value
            else:
                assert answer.value == 6
    assert neighbour.ask("rank", timeout=HANG).value == 6


@pytest.mark.parametrize(
    ("name", "words"),
    [("rubbish", "a dict is no value"), ("number", "cannot be called"), ("none", "no attribute")],
)
def test_a_callable_that_is_none_is_said_to_be(
    tree: sapwood.Network, name: str, words: str
) -> None:
    if name == "rubbish":
        with pytest.raises(sapwood.NoValueError, match=words):
            assert asked(tree, f"python:merges:{name}").value
    else:
        with pytest.raises(sapwood.FilterError, match=words):
            tree.stream(up=f"python:merges:{name}")


def test_names_that_lead_nowhere(tree: sapwood.Network) -> None:
    with pytest.raises(sapwood.FilterError, match="No module named 'nowhere'"):
        tree.stream(up="python:nowhere:total")
    with pytest.raises(sapwood.FilterError, match="python:module:function"):
        tree.stream(up="python:merges")
    with pytest.raises(TypeError, match="a filter is a name"):
        tree.stream(up=(1, 2))


def test_it_may_give_no_packet_or_several_things(tree: sapwood.Network) -> None:
    with tree.stream(up="python:merges:nothing") as stream:
        for _ in range(3):
            stream.send("rank")
        assert stream.recv(HANG).question == 2
    answer = asked(tree, "python:merges:several")
    assert answer.value == (6, "by hand") and answer.tag == 200


def test_on_the_way_down_too(tree: sapwood.Network) -> None:
    with tree.stream(up="sum", down="python:merges:doubled") as stream:
        # Once at the front-end, once at each communication process.
        assert stream.ask("echo", 3, format="%s %ld", timeout=HANG).value == 4 * 12


def test_an_instance_keeps_its_state(tree: sapwood.Network) -> None:
    with tree.stream(up=("python:merges:Running", 100)) as stream:
        sums = [stream.ask("rank", timeout=HANG).value for _ in range(3)]
    assert sums == [106, 112, 118]


# The library and the program in the wheel are optimised otherwise than those of other tests.
@pytest.mark.parametrize(("shape", "back_ends"), [("2", 2), ("2x2", 4)])
def test_loops_in_webassembly_take_no_stack(opened: Opener, shape: str, back_ends: int) -> None:
    filters = Path(__file__).resolve().parents[3] / "crates" / "extension"
    network = opened(shape)
    mean, endless = filters / "filters/mean.wasm", filters / "tests/filters/faults.wasm"
    for length in (3000, 30000):
        count, means = asked(network, f"wasm:{mean}#mean", "array", length, "f8").value
        assert count == back_ends and list(means) == [(back_ends + 1) / 2] * length
        answer = asked(network, f"wasm:{endless}#loop", "array", 3, "f8")
        with pytest.raises(sapwood.NoValueError, match="runs too long"):
            assert answer.value


def test_its_source_may_be_shipped(tree: sapwood.Network, tmp_path: Path) -> None:
    def product(wave: sapwood.Wave, start: int) -> int:
        import math

        return math.prod(wave.values) * (start if wave.is_root else 1)

    shipped = sapwood.PythonFilter(product, 5)
    with tree.stream("1-3", up=shipped) as stream:
        assert stream.ask("rank", timeout=HANG).value == 30
    file = tmp_path / "least.py"
    file.write_text("import operator\n\ndef least(wave):\n    return min(wave.values)\n")
    assert asked(tree, [sapwood.PythonFilter.from_file(file, "least")]).value == 0
    wrong = sapwood.PythonFilter.from_source("def f(wave):\n    return 1 // 0\n", "f")
    with pytest.raises(sapwood.NoValueError, match=r"ZeroDivisionError: .*<filter f>:2"):
        assert asked(tree, wrong).value
    with pytest.raises(SyntaxError):
        sapwood.PythonFilter.from_source("def f(", "f")
    with pytest.raises(ValueError, match="at most"):
        sapwood.PythonFilter.from_source("#" * (1 << 20), "f")


def test_a_process_without_python_says_so(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    network = opened("2x2")
    with network.stream(up="python:merges:total") as stream:
        with pytest.raises((sapwood.NoMemberLeftError, sapwood.NoValueError)):
            assert stream.ask("rank", timeout=HANG).value
    assert network.stream(up="sum").ask("rank", timeout=HANG).value == 6


def test_a_process_that_a_filter_ends_is_replaced(tree: sapwood.Network) -> None:
    with tree.stream(up="python:merges:vanishing") as stream:
        stream.send("rank")
        kinds: list[str] = []
        until = time.monotonic() + HANG
        while "repaired" not in kinds:
            assert time.monotonic() < until
            tree.turn(0.1)
            kinds += [event.kind for event in tree.events()]
    assert tree.stream(up="sum").ask("rank", timeout=HANG).value == 6


ROOT = FOLDER.parents[2]
SUMS = ROOT / "crates/extension/filters/sums"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A shared object of filters, in a folder that no other process is told of."""
    made = tmp_path / "libsums.so"
    words = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-I", str(ROOT / "bindings/c/include")]
    subprocess.run([*words, "-o", str(made), str(SUMS.with_suffix(".c"))], check=True)
    return made


def let_go(network: sapwood.Network, rule: Any) -> sapwood.Answer:
    """A wave to which rank 3 gives nothing."""
    with network.stream(up="sum", rule=rule) as stream:
        answer = stream.ask("hush", 3, timeout=HANG)
    assert answer.value == 3 and str(answer.contributors) == "0-2"
    assert "when the stream's wave rule forwarded the answer to question 0" in answer.missing[0].reason
    return answer


def test_files_go_through_the_tree(opened: Opener, library: Path, tmp_path: Path) -> None:
    network = opened("1x4")
    native = network.ship(library)
    module = network.ship(str(SUMS.with_suffix(".wasm")))
    assert network.ship(library).name == native.name and native.name.startswith("native:libsums.so=")
    library.unlink()
    for file in (native, module):
        sums = asked(network, file.filter("sum3"), "array", 2, "f8")
        assert list(sums.value) == [10.0, 10.0]
        let_go(network, file.filter("quorum", numpy.int32(3)))
    with pytest.raises(sapwood.FilterError, match="has no filter 'sum4'"):
        network.stream(up=native.filter("sum4"))
    with pytest.raises(sapwood.FilterError, match="no file of filters"):
        network.ship(library)
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(sapwood.FilterError, match="neither a shared object nor WebAssembly"):
        network.ship(tmp_path / "notes")


def test_files_of_python_go_through_the_tree(opened: Opener, tmp_path: Path) -> None:
    network = opened("1x4", node_program=PYTHON_NODE)
    file = tmp_path / "far.py"
    file.write_text(
        "import operator\n\n\nSHIFT = 1\n\n\ndef most(wave):\n    return max(wave.values) + SHIFT\n\n\n"
        "def some(arrivals, least):\n    return operator.ge(arrivals.arrived, least)\n\n\n"
        "def wrong(wave):\n    return 1 // 0\n"
    )
    shipped = network.ship(file)
    file.unlink()
    # Once at the communication process, once at the front-end.
    assert asked(network, shipped.filter("most")).value == 5
    let_go(network, shipped.filter("some", 3))
    with pytest.raises(sapwood.NoValueError, match=r"ZeroDivisionError: .*\(far.py:16\)"):
        assert asked(network, shipped.filter("wrong")).value
    with pytest.raises(sapwood.FilterError, match="name the one that is meant"):
        network.stream(up=shipped.filter())
    with pytest.raises(sapwood.FilterError, match="'none.py' have not been shipped"):
        network.stream(up="python:none.py=00#most")
    file.write_text("def most(")
    with pytest.raises(SyntaxError):
        network.ship(file)
    with pytest.raises(FileNotFoundError):
        network.ship(tmp_path / "gone.py")


@pytest.mark.parametrize(
    "rule",
    [
        ("python:merges:quorum", 3),
        ("python:merges:patient", 0.2),
        sapwood.PythonFilter.from_source("def most(a, n):\n    return a.arrived >= n or a.is_root\n", "most", 3),
        pytest.param("wasm", id="wasm"),
    ],
)
def test_a_rule_lets_waves_go(opened: Opener, monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(FOLDER))
    if rule == "wasm":
        rule = (f"wasm:{SUMS.with_suffix('.wasm')}#quorum", numpy.int32(3))
    network = opened("1x4", node_program=PYTHON_NODE)
    let_go(network, rule)
    with network.stream(up="sum", rule=rule) as stream:
        # No member is left out silently; late ones are named.
        answer = stream.ask("rank", timeout=HANG)
        assert answer.value == sum(answer.contributors) and len(answer.contributors) >= 3


def test_a_rule_that_is_none_is_said_to_be(opened: Opener, tree: sapwood.Network) -> None:
    # A wave that is whole would not wait for what it says.
    with opened("2").stream(up="sum", rule="python:merges:confused") as stream:
        with pytest.raises(sapwood.NoValueError, match="a rule gives True for a wave that goes on"):
            assert stream.ask("hush", 1, timeout=HANG).value
    for rule, words in [
        ("sum", "'sum' is no synchronisation rule"),
        ("python:merges:number", "cannot be called"),
        (f"wasm:{SUMS.with_suffix('.wasm')}#sum3", "it has no decide"),
    ]:
        with pytest.raises(sapwood.FilterError, match=words):
            tree.stream(rule=rule)
    with pytest.raises(TypeError, match="a filter is a name"):
        tree.stream(rule=["python:merges:quorum", 3])
    assert tree.stream(up="sum").ask("rank", timeout=HANG).value == 6


@pytest.mark.parametrize("name", ["endless", "busy", "asleep"])
def test_one_that_never_returns_is_given_up_and_harms_nothing_else(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(FOLDER))
    network = opened("2x2", node_program=PYTHON_NODE, filter_limit=0.3)
    neighbour = network.stream(up="sum")
    with network.stream(up=f"python:merges:{name}") as stream:
        for _ in range(2):
            with pytest.raises(sapwood.NoValueError, match="has run for 300 ms and is given up") as raised:
                assert stream.ask("rank", timeout=HANG).value
            lacking = set().union(*(part.ranks for part in raised.value.missing))
            assert lacking == {0, 1, 2, 3}
            assert neighbour.ask("rank", timeout=HANG).value == 6
    before = children()
    network.close()
    wait_until_gone(before)
    assert capfd.readouterr().err == ""


def test_a_rule_that_never_decides_is_given_up_and_harms_nothing_else(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(FOLDER))
    network = opened("1x4", node_program=PYTHON_NODE, filter_limit=0.3)
    neighbour = network.stream(up="sum")
    with network.stream(up="sum", rule="python:merges:endless") as stream:
        # Whole waves go on without it.
        assert stream.ask("rank", timeout=HANG).value == 6
        words = "rule 'python:merges:endless' of stream .* has run for 300 ms and is given up"
        with pytest.raises(sapwood.NoValueError, match=words):
            assert stream.ask("hush", 3, timeout=HANG).value
        assert neighbour.ask("rank", timeout=HANG).value == 6


def test_a_front_end_ends_in_order_while_a_filter_does_not(tmp_path: Path) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text(
        "import sys, sapwood\n"
        "with sapwood.Network('2', sys.argv[1:], filter_limit=0.3) as network:\n"
        "    try:\n"
        "        network.stream(up='python:merges:busy').ask('rank', timeout=60).value\n"
        "    except sapwood.NoValueError as error:\n"
        "        print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, str(tool), *WORKER],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert ran.returncode == 0 and ran.stderr == ""
    assert "has run for 300 ms and is given up" in ran.stdout


def test_a_limit_that_is_none(opened: Opener) -> None:
    for limit in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="is no time to work in"):
            opened(filter_limit=limit)
    patient = opened(filter_limit=float("inf"))
    assert patient.stream(up="sum").ask("rank", timeout=HANG).value == 1

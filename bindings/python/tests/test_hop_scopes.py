"""Figures of the hops of a network, by `sapwood.scope`."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import sapwood
from conftest import HANG, Opener
from sapwood.scope import Gathering, Scope, follow, watch


def test_a_scope_over_hops_is_a_document() -> None:
    scope = Scope(source="hops", value="two-way", streams=[1, 7], ranks="0-3", by=("edge", "stream"), reduce="top=5")
    assert scope.document() == {
        "source": "hops",
        "value": "two-way",
        "streams": ["1", "7"],
        "ranks": "0-3",
        "by": ["edge", "stream"],
        "reduce": "top=5",
    }


@pytest.mark.parametrize(("topology", "edges"), [("1x1", 2), ("2x2", 6), ("4", 4)])
def test_each_link_of_a_network_has_its_figures(
    opened: Opener, topology: str, edges: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    network = opened(topology)
    network.publish("hops")
    stream = network.stream(up="sum")
    gatherings: list[Gathering] = []
    failures: list[BaseException] = []

    def gather() -> None:
        scopes = [
            Scope(name="edges", source="hops", value="wait", by="edge", every="end"),
            Scope(name="kinds", source="hops", value="inside", by="kind", every="end"),
        ]
        try:
            gatherings.extend(follow(*scopes, network="hops", seconds=1.0, timeout=10.0))
        except BaseException as error:
            failures.append(error)

    follower = threading.Thread(target=gather)
    follower.start()
    while follower.is_alive():
        stream.ask("rank", timeout=HANG)
    follower.join()
    assert failures == []
    links, kinds = gatherings
    assert (links.scope, links.source, links.is_last) == ("edges", "hops", True)
    assert len({(one.parent, one.rank) for one in links.groups}) == edges
    assert sum(one.count for one in links.groups) == links.events_selected
    roles = {one.kind for one in kinds.groups}
    assert roles == {"front-end", "back-end"} | ({"communication-process"} if "x" in topology else set())


@pytest.mark.parametrize(
    ("scope", "what"),
    [
        (Scope(source="hops", functions="MPI_*"), "functions: hops have no such key"),
        (Scope(source="hops", by="rank"), "none of edge, process, stream, kind"),
        (Scope(source="hops", value="inside", by="edge"), "use by=process"),
        (Scope(value="wait"), 'takes scopes with source="hops"'),
    ],
)
def test_what_hops_do_not_have_is_an_error(scope: Scope, what: str) -> None:
    with pytest.raises(sapwood.errors.ScopeError, match=what):
        follow(scope)


def test_hops_are_not_of_a_program() -> None:
    with pytest.raises(sapwood.errors.ScopeError, match="running network, not of a program"):
        watch(["false"], Scope(source="hops"))


def test_the_command_has_the_time_that_processes_may_take_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    within: list[float] = []

    def finished(words: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        within.append(timeout)
        return subprocess.CompletedProcess(list(words), 0, stdout="", stderr="")

    monkeypatch.setattr("sapwood.scope._finished", finished)
    assert follow(Scope(source="hops"), seconds=3.0, timeout=500.0) == []
    assert within[-1] > 503.0


def test_a_scope_and_a_network_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(sapwood.errors.ScopeError, match="a scope is needed"):
        follow()
    with pytest.raises(sapwood.errors.SystemError, match="no visible network"):
        follow(Scope(source="hops"), network="none")

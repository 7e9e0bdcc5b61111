"""Figures of the hops of a network, by `sapwood.scope`."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import sapwood
from conftest import FOLDER, HANG, Opener
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
            gatherings.extend(follow(*scopes, network="hops", seconds=3.0, timeout=HANG))
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
        (Scope(source="group"), 'group= goes with scopes with source="group"'),
    ],
)
def test_what_hops_do_not_have_is_an_error(scope: Scope, what: str) -> None:
    with pytest.raises(sapwood.errors.ScopeError, match=what):
        follow(scope)


def test_one_call_follows_one_source() -> None:
    with pytest.raises(sapwood.errors.ScopeError, match="one source"):
        follow(Scope(source="hops"), Scope(source="group"), group="unix:/nowhere")
    with pytest.raises(sapwood.errors.ScopeError, match="a group has no streams"):
        follow(Scope(source="group", streams=[1]), group="unix:/nowhere")


def test_hops_are_not_of_a_program() -> None:
    with pytest.raises(sapwood.errors.ScopeError, match="running network, not of a program"):
        watch(["false"], Scope(source="hops"))
    with pytest.raises(sapwood.errors.ScopeError, match="running group, not of a program"):
        watch(["false"], Scope(source="group"))


def test_each_link_of_a_group_has_its_figures(tmp_path: Path) -> None:
    key = tmp_path / "key"
    sapwood.make_key(key)
    members = [sapwood.Group.create(key, names=0)]
    try:
        members.append(sapwood.Group.join(members[0].address, key, names=1))
        for member in members:
            member.wait_for(2, HANG)
        gatherings: list[Gathering] = []
        failures: list[BaseException] = []
        scopes = [
            Scope(name="links", source="group", value="up", by=("edge", "collective", "root"), every="end"),
            Scope(name="kinds", source="group", value="inside", by="kind", collectives="reduction", every="end"),
        ]

        def gather() -> None:
            try:
                found = follow(*scopes, group=members[0].address, key=key, seconds=3.0, timeout=HANG)
                gatherings.extend(found)
            except BaseException as error:
                failures.append(error)

        follower = threading.Thread(target=gather)
        follower.start()

        def reduce_until_the_end(member: sapwood.Group) -> None:
            # The root says in each reduction whether another one follows.
            while member.allreduce(int(member.rank == 0 and follower.is_alive()), op=sapwood.MAX, timeout=HANG):
                pass

        other = threading.Thread(target=reduce_until_the_end, args=(members[1],))
        other.start()
        reduce_until_the_end(members[0])
        other.join()
        follower.join()
    finally:
        for member in members:
            member.leave()
    assert failures == []
    links, kinds = gatherings
    assert (links.scope, links.source, links.is_last, links.ranks) == ("links", "group", True, 2)
    assert links.groups
    for one in links.groups:
        assert {one.parent, one.rank} == {0, 1}
        assert one.collective == "reduction"
        assert one.root in (0, 1)
    assert {one.kind for one in kinds.groups} == {"root", "leaf"}


def test_the_command_has_the_time_that_processes_may_take_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    within: list[float] = []

    # A command that used up this time would take the test more than a minute.
    def run(words: Sequence[str], *, timeout: float, **_: object) -> subprocess.CompletedProcess[str]:
        within.append(timeout)
        return subprocess.CompletedProcess(list(words), 0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    assert follow(Scope(source="hops"), seconds=3.0, timeout=500.0) == []
    assert within[-1] > 503.0


def test_a_scope_and_a_network_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(sapwood.errors.ScopeError, match="a scope is needed"):
        follow()
    with pytest.raises(sapwood.errors.SystemError, match="no visible network"):
        follow(Scope(source="hops"), network="none")


def test_the_program_of_the_page_about_groups_runs(tmp_path: Path) -> None:
    page = (FOLDER.parents[2] / "docs" / "groups.md").read_text(encoding="utf-8")
    found = re.search(r"^    import threading\n(?:    .*\n|\n)+", page, re.M)
    assert found is not None
    program = tmp_path / "waits.py"
    program.write_text(re.sub(r"^    ", "", found[0], flags=re.M), encoding="utf-8")
    words = [sys.executable, str(program)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=2 * HANG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" not read"), done.stdout

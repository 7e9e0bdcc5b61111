"""Groups: members in threads and in processes of their own, over real sockets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sapwood

HANG = 60.0

MEMBER = """
import sys
import sapwood

with sapwood.Group.join(sys.argv[1], sys.argv[2], names=int(sys.argv[3])) as group:
    group.wait_for(3)
    group.barrier()
    if group.rank == 2:
        import os
        os._exit(9)
    total = group.allreduce({group.rank}, op=sapwood.BOR, number=50, timeout=20)
    print(sorted(total))
"""

Members = list[sapwood.Group]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    sapwood.make_key(path)
    return path


@pytest.fixture
def members(key: Path) -> Iterator[Members]:
    """Three members, each with one virtual node."""
    first = sapwood.Group.create(key, names=0)
    found = [first]
    try:
        for name in (1, 2):
            found.append(sapwood.Group.join(first.address, key, names=name))
        for member in found:
            member.wait_for(3, HANG)
        yield found
    finally:
        for member in found:
            member.leave()


def shared_ends() -> int:
    """How many ends of links in shared memory this process has."""
    with open("/proc/self/maps") as maps:
        return sum("sapwood-link" in line for line in maps)


@pytest.mark.parametrize("shared", [True, False])
def test_members_of_one_host_share_memory_unless_they_are_told_not_to(key: Path, shared: bool) -> None:
    with sapwood.Group.create(key, names=0, shared_memory=shared) as first:
        before = shared_ends()
        with sapwood.Group.join(first.address, key, names=1, shared_memory=True) as second:
            first.wait_for(2, HANG)
            second.wait_for(2, HANG)
            second.send("a value", 0)
            assert first.recv() == "a value"
            assert (shared_ends() > before) == shared


def all_of(members: Members, call: Callable[[sapwood.Group], Any]) -> list[Any]:
    """What each member's call gives, all at the same time."""
    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(call, members, timeout=HANG))


def test_a_reduction_is_left_before_those_below_have_come(members: Members) -> None:
    mine = [array("q", [1 << member.rank, 5]) for member in members]
    # Nothing waits for the member 2, which has not called.
    members[1].Reduce(mine[1], root=0, bypass=True, tree="list", number=7)
    assert members[1].gather("one", root=0, bypass=True, tree="list", number=8) is None
    members[2].Reduce(mine[2], root=0, bypass=True, tree="list", number=7)
    members[2].gather("two", root=0, bypass=True, tree="list", number=8)
    total = array("q", [0, 0])
    members[0].Reduce(mine[0], total, root=0, bypass=True, tree="list", number=7)
    assert list(total) == [7, 15]
    assert members[0].gather("zero", root=0, bypass=True, tree="list", number=8) == ["zero", "one", "two"]
    assert members[1].bypassed.failed == 0
    with pytest.raises(Exception, match="left early"):
        members[1].allgather(1, bypass=True)


def test_objects_go_by_the_calls_of_mpi4py(members: Members) -> None:
    value = {"a": [1, 2.5, None]}
    assert all_of(members, lambda one: one.bcast(value if one.rank == 1 else None, root=1)) == [value] * 3
    assert all_of(members, lambda one: one.gather(str(one.rank), root=2)) == [None, None, ["0", "1", "2"]]
    assert all_of(members, lambda one: one.allgather(one.rank * 2)) == [[0, 2, 4]] * 3
    parts = ["x", "y", "z"]
    assert all_of(members, lambda one: one.scatter(parts if one.rank == 0 else None)) == parts
    crossed = all_of(members, lambda one: one.alltoall([(one.rank, to) for to in range(3)]))
    assert crossed == [[(come, to) for come in range(3)] for to in range(3)]
    assert all_of(members, lambda one: one.reduce(one.rank + 1, op=sapwood.PROD)) == [6, None, None]
    assert all_of(members, lambda one: one.allreduce(f"{one.rank}")) == ["012"] * 3
    assert all_of(members, lambda one: one.barrier()) == [None] * 3
    last = members[0].last
    assert last is not None
    assert (str(last.contributors), last.missing) == ("0-2", [])


def test_buffers_are_combined_in_the_tree(members: Members) -> None:
    def allreduce(one: sapwood.Group) -> list[float]:
        received = array("d", [0, 0])
        one.Allreduce(array("d", [one.rank, 0.5]), received, op=sapwood.SUM)
        return list(received)

    assert all_of(members, allreduce) == [[3.0, 1.5]] * 3

    def reduce(one: sapwood.Group) -> list[int]:
        received = array("i", [0])
        one.Reduce(array("i", [one.rank + 5]), received, op=sapwood.MIN, root=2)
        return list(received)

    assert all_of(members, reduce) == [[0], [0], [5]]

    def bcast(one: sapwood.Group) -> bytes:
        buffer = bytearray(b"root" if one.rank == 0 else b"none")
        one.Bcast(buffer, root=0)
        return bytes(buffer)

    assert all_of(members, bcast) == [b"root"] * 3


def test_values_are_sent_and_requests_awaited(members: Members) -> None:
    members[0].send({"to": 2}, dest=2, tag=7)
    value = members[2].recv_value(HANG)
    assert (value.tag, str(value.sender)) == (7, "0")
    members[1].publish("all")
    assert [members[0].recv(HANG), members[2].recv(HANG)] == ["all", "all"]
    with pytest.raises(sapwood.TimeoutError):
        members[0].recv(0.01)

    async def together() -> list[Any]:
        return await asyncio.gather(*(one.iallgather(one.rank) for one in members))

    assert asyncio.run(together()) == [[0, 1, 2]] * 3
    request = members[0].ibarrier()
    assert request.test() == (False, None)
    all_of(members[1:], lambda one: one.barrier())
    request.wait()


def test_a_member_that_leaves_hands_its_virtual_nodes_to_the_one_that_is_named(members: Members) -> None:
    members[2].leave(to=1)
    members[2].leave()
    # All three virtual nodes are carried, by two members.
    members[0].send("to the heir", 2)
    assert members[1].recv(HANG) == "to the heir"
    assert all_of(members[:2], lambda one: one.allreduce({one.rank}, op=sapwood.BOR)) == [{0, 1}] * 2
    for member in members[:2]:
        assert member.last is not None
        assert (str(member.last.contributors), member.last.missing) == ("0-2", [])
    assert str(members[1].names) == "1-2"


def test_a_member_that_another_thread_uses_hands_its_virtual_nodes_over_as_well(members: Members) -> None:
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(members[2].recv, HANG)
        members[2].leave(to=1)
        assert isinstance(listening.exception(HANG), sapwood.ClosedError)
    members[0].send("to the heir", 2)
    assert members[1].recv(HANG) == "to the heir"


def test_what_is_wrong_is_said(members: Members, key: Path, tmp_path: Path) -> None:
    with pytest.raises(sapwood.GroupError, match="carries some of these"):
        sapwood.Group.join(members[0].address, key, names=1)
    sapwood.make_key(tmp_path / "other")
    with pytest.raises(sapwood.GroupError, match="key"):
        sapwood.Group.join(members[0].address, tmp_path / "other", names=9)
    with pytest.raises(ValueError, match="adaptive"):
        members[0].barrier(tree="oak")
    with pytest.raises(sapwood.NoValueError, match="the deadline passed"):
        members[0].bcast(root=1, timeout=0.1)
    members[2].leave()
    with pytest.raises(sapwood.ClosedError):
        members[2].barrier()


def test_a_process_that_ends_costs_no_other_its_answer(key: Path) -> None:
    with sapwood.Group.create(key, names=0) as group:
        arguments = [sys.executable, "-c", MEMBER, group.address, str(key)]
        others = [
            subprocess.Popen([*arguments, str(name)], stdout=subprocess.PIPE, text=True) for name in (1, 2)
        ]
        group.wait_for(3, HANG)
        group.barrier(timeout=HANG)
        assert others[1].wait(HANG) == 9
        total = group.allreduce({0}, op=sapwood.BOR, number=50, timeout=20)
        output, _ = others[0].communicate(timeout=HANG)
    assert total == {0, 1}
    assert output.strip() == "[0, 1]"

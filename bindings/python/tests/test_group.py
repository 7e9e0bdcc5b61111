"""Groups: members in threads and in processes of their own, over real sockets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
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


def test_parts_of_reductions_are_counted(key: Path) -> None:
    mine = array("q", [1, 5])
    total = array("q", [0, 0])
    with (
        sapwood.Group.create(key, names=0, grace=0) as first,
        sapwood.Group.join(first.address, key, names=1, grace=0.001) as second,
    ):
        first.wait_for(2, HANG)
        second.wait_for(2, HANG)
        assert second.reduce_counts == ((0, 0, 0, 0), (0, 0, 0, 0), 0, 0)
        second.Reduce(mine, root=0, number=7)
        first.Reduce(mine, total, root=0, number=7)
        assert list(total) == [2, 10]
        counts = first.reduce_counts
        both = (counts.expected, counts.unexpected)
        assert sum(count.parts for count in both) >= 1
        assert all(count.bytes == 16 * count.parts for count in both)
        assert all((count.copied_parts, count.copied_bytes) == (0, 0) for count in both), "they are added to the own"
        with pytest.raises(ValueError, match="grace"):
            sapwood.Group.join(first.address, key, names=2, grace=-1.0)


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


def follow(one: Any, other: Any) -> Any:
    """One line after the other, each a slope and an offset: not commutative, and not element by element."""
    return numpy.array([one[0] * other[0], one[0] * other[1] + one[1]])


def line_of(member: sapwood.Group) -> Any:
    return numpy.array([member.rank + 2, 10 - member.rank], "i8")


def test_a_function_combines_buffers_in_the_order_of_the_virtual_nodes(members: Members) -> None:
    def allreduce(one: sapwood.Group) -> list[int]:
        received = numpy.zeros(2, "i8")
        one.Allreduce(line_of(one), received, op=follow)
        return list(received)

    assert all_of(members, allreduce) == [[24, 2 * (3 * 8 + 9) + 10]] * 3

    def reduce(one: sapwood.Group) -> list[int]:
        received = line_of(one)
        one.Reduce(sapwood.IN_PLACE, received, op=follow, root=1, tree="list")
        return list(received)

    assert all_of(members, reduce) == [[2, 10], [24, 76], [4, 8]]

    def in_place(one: Any, other: Any) -> Any:
        one += 2 * other
        return one

    def reduce_scatter(one: sapwood.Group) -> list[float]:
        received = array("f", [0])
        one.Reduce_scatter(array("f", [one.rank, 1, 0.5]), received, op=in_place)
        return list(received)

    assert all_of(members, reduce_scatter) == [[6.0], [5.0], [2.5]]
    assert all_of(members, lambda one: one.Allreduce(array("d"), array("d"), op=in_place)) == [None] * 3


def test_a_function_that_fails_is_an_error_of_each_call_and_the_group_goes_on(members: Members) -> None:
    def raising(_one: Any, _other: Any) -> Any:
        raise ArithmeticError("refused by the program")

    def failed(op: Callable[[sapwood.Group], Any], kind: type[Exception]) -> list[str]:
        def call(one: sapwood.Group) -> str:
            received = numpy.full(2, -1, "i8")
            with pytest.raises(kind) as raised:
                one.Allreduce(line_of(one), received, op=op(one))
            assert list(received) == [-1, -1]
            return str(raised.value)

        return all_of(members, call)

    assert failed(lambda _: raising, ArithmeticError) == ["refused by the program"] * 3
    shorter = "Allreduce: '<lambda>' has made (1,) of arrays of (2,) elements"
    assert failed(lambda _: lambda one, other: one[:1], ValueError) == [shorter] * 3
    assert all("float64" in text for text in failed(lambda _: lambda one, other: one * 0.5, TypeError))
    others = failed(lambda one: follow if one.rank == 1 else raising, sapwood.GroupError)
    own = "16 bytes of type '<i8' by '{}'"
    strange = "Allreduce: virtual node {} combines " + own + ", this member " + own
    assert others == [strange.format(*found) for found in [(1, "follow", "raising"), (0, "raising", "follow")]] + [
        strange.format(1, "follow", "raising")
    ]
    with pytest.raises(TypeError, match="op is an operation"):
        members[0].Allreduce(line_of(members[0]), numpy.zeros(2, "i8"), op="sum")
    assert all_of(members, lambda one: one.allreduce(one.rank)) == [3] * 3


def test_a_member_that_calls_a_built_in_operation_is_told_and_the_others_go_on(members: Members) -> None:
    def call(one: sapwood.Group) -> list[int] | str:
        received = numpy.zeros(2, "i8")
        try:
            one.Allreduce(line_of(one), received, op=sapwood.SUM if one.rank == 2 else follow)
        except sapwood.NoValueError as error:
            return str(error)
        return list(received)

    told = "2: operation, element type or count differs from the root's, or the whole result is too long"
    assert all_of(members, call) == [[6, 28], [6, 28], told]


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


def until_names(member: sapwood.Group, names: str) -> None:
    """Waits until a member itself knows that it carries these virtual nodes."""
    end = time.monotonic() + HANG
    while (found := str(member.names)) != names:
        assert time.monotonic() < end, f"{found} and not {names}"
        time.sleep(0.01)


def test_a_member_that_joins_takes_virtual_nodes_from_one_that_stays(key: Path, tmp_path: Path) -> None:
    file = tmp_path / "address"
    with sapwood.Group.create(key, names="0-3", address_file=file) as first:
        with (
            sapwood.Group.join(first.address, key, take=3) as second,
            sapwood.Group.join(key=key, address_file=file, take=[1, 2], names=9) as third,
        ):
            assert [str(one.names) for one in (second, third)] == ["3", "1-2,9"]
            until_names(first, "0")
            first.send("to the second", 3)
            assert second.recv(HANG) == "to the second"
            for member in (first, second, third):
                member.wait_for(5, HANG)
            totals = all_of([first, second, third], lambda one: one.allreduce({one.rank}, op=sapwood.BOR))
            assert totals == [{0, 1, 3}] * 3
            assert first.last is not None
            assert (str(first.last.contributors), first.last.missing) == ("0-3,9", [])
            # All of a member's, some of two members', and what none carries.
            for take in (3, "0-1", range(20, 22)):
                with pytest.raises(sapwood.GroupError, match="virtual nodes to take"):
                    sapwood.Group.join(first.address, key, take=take)
            with pytest.raises(TypeError, match="names no ranks"):
                sapwood.Group.join(first.address, key, take=1.5)
        with pytest.raises(TypeError, match="take"):
            sapwood.Group.create(key, take=1)


def test_what_is_wrong_is_said(members: Members, key: Path, tmp_path: Path) -> None:
    with pytest.raises(sapwood.GroupError, match="carries some of these"):
        sapwood.Group.join(members[0].address, key, names=1)
    sapwood.make_key(tmp_path / "other")
    with pytest.raises(sapwood.GroupError, match="key"):
        sapwood.Group.join(members[0].address, tmp_path / "other", names=9)
    with pytest.raises(sapwood.GroupError, match="1 to 16777216 virtual nodes"):
        sapwood.Group.create(key, space=(1 << 24) + 1)
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

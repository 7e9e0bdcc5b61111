"""One member of a group in a process of its own, which calls what mpi4py's users call, and judges what comes.

    group_member.py KEY ADDRESS-FILE RANK SIZE

What is right is what the standard of MPI says of the call of that name: computed here from what all members send,
which each member knows.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any

import numpy
import sapwood
from numpy.testing import assert_array_equal
from sapwood import BAND, BOR, IN_PLACE, LAND, LOR, MAX, MIN, PROD, SUM

HANG = 60.0
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FOLDS: list[tuple[Any, Any]] = [
    (SUM, numpy.add),
    (PROD, numpy.multiply),
    (MIN, numpy.minimum),
    (MAX, numpy.maximum),
    (BAND, numpy.bitwise_and),
    (BOR, numpy.bitwise_or),
    (LAND, numpy.logical_and),
    (LOR, numpy.logical_or),
]


def sent_by(rank: int, dtype: str, count: int) -> Any:
    """Numbers of the whole range of a type, with zeros among them; sums of integers wrap."""
    if dtype.startswith("f"):
        return (numpy.arange(count) - 2.5 * rank).astype(dtype)
    width = 8 * numpy.dtype(dtype).itemsize
    mixed = numpy.arange(1, count + 1, dtype="u8") * numpy.uint64(0x9E3779B97F4A7C15 >> rank)
    numbers = (mixed >> numpy.uint64(64 - width)).astype(dtype)
    numbers[rank % count] = 0
    return numbers


def of_all(size: int, dtype: str, count: int) -> Any:
    return numpy.stack([sent_by(rank, dtype, count) for rank in range(size)])


def reductions(group: sapwood.Group, rank: int, size: int) -> None:
    for dtype in [*INTEGERS, "f4", "f8"]:
        own, everyones = sent_by(rank, dtype, 3 * size), of_all(size, dtype, 3 * size)
        for op, fold in FOLDS[:4] if dtype.startswith("f") else FOLDS:
            expected = fold.reduce(everyones, axis=0, dtype=dtype if fold in (numpy.add, numpy.multiply) else None)
            expected = expected.astype(dtype)
            received = numpy.zeros_like(own)
            group.Allreduce(own, received, op=op)
            assert_array_equal(received, expected, f"Allreduce {dtype} {op}")
            received[:] = 0
            group.Reduce(own, received if rank == 1 else None, op=op, root=1)
            assert_array_equal(received, expected if rank == 1 else 0, f"Reduce {dtype} {op}")
            block = numpy.zeros(3, dtype)
            group.Reduce_scatter_block(own, block, op=op)
            assert_array_equal(block, expected[3 * rank :][:3], f"Reduce_scatter_block {dtype} {op}")
    truths = numpy.array([rank == 0, True, False])
    group.Allreduce(IN_PLACE, truths, op=LAND)
    assert_array_equal(truths, [False, True, False])
    # Blocks of different lengths: one element more for each further virtual node, and none for the first.
    counts = list(range(size))
    own = numpy.arange(sum(counts), dtype="u8") + rank
    block = numpy.zeros(counts[rank], "u8")
    group.Reduce_scatter(own, block, counts)
    first = sum(counts[:rank])
    assert_array_equal(block, size * numpy.arange(first, first + rank) + sum(range(size)))


def movements(group: sapwood.Group, rank: int, size: int) -> None:
    table = numpy.arange(size * 6, dtype="f8").reshape(size, 2, 3)
    received = numpy.empty((2, 3))
    group.Scatter(table if rank == 2 else None, received, root=2)
    assert_array_equal(received, table[rank])
    gathered = numpy.zeros_like(table)
    group.Gather(received, gathered if rank == 0 else None, root=0)
    assert_array_equal(gathered, table if rank == 0 else numpy.zeros_like(table))
    group.Allgather(received, gathered)
    assert_array_equal(gathered, table)
    crossed = numpy.empty((size, 2), "i2")
    group.Alltoall(numpy.array([[rank, to] for to in range(size)], "i2"), crossed)
    assert_array_equal(crossed, [[come, rank] for come in range(size)])
    plain = array("H", [0] * size)
    group.Allgather(array("H", [60_000 + rank]), plain)
    assert list(plain) == [60_000 + come for come in range(size)]
    # Types that are not combined move all the same, and so does an array in the order of columns.
    waves = numpy.full((3, 2), 1j * rank, order="F")
    group.Bcast(waves, root=1)
    assert_array_equal(waves, numpy.full((3, 2), 1j))
    point = numpy.array(7.5 if rank == 0 else 0.0)
    group.Bcast(point)
    assert point == 7.5


def requests(group: sapwood.Group, rank: int, size: int) -> None:
    assert group.ireduce(rank, op=MAX, root=1).wait() == (size - 1 if rank == 1 else None)
    assert group.iallreduce([rank]).wait() == list(range(size))
    assert group.iallreduce(rank, op=LOR).wait() is True
    assert group.iscatter([f"to {to}" for to in range(size)] if rank == 0 else None).wait() == f"to {rank}"
    assert group.ialltoall([(rank, to) for to in range(size)]).wait() == [(come, rank) for come in range(size)]
    # Several at once, which end in any order.
    total, everyone = numpy.zeros(2, "u4"), numpy.zeros(size, "i8")
    pending = [
        group.Iallreduce(numpy.array([rank, 1], "u4"), total),
        group.Iallgather(numpy.array([rank]), everyone),
        group.Ibcast(bytearray(5)),
    ]
    for request in reversed(pending):
        assert request.wait() is None
    assert_array_equal(total, [sum(range(size)), size])
    assert_array_equal(everyone, range(size))


def messages(group: sapwood.Group, rank: int, size: int) -> None:
    """Round a ring, with two tags, which are received in the other order."""
    after, before = (rank + 1) % size, (rank - 1) % size
    group.Send(numpy.array([rank, 10], "i4"), after, tag=1)
    group.send({"from": rank}, after, tag=2)
    assert group.recv(HANG, source=before, tag=2) == {"from": before}
    longer = numpy.full(3, -1, "i4")
    value = group.Recv(longer, source=before, timeout=HANG)
    assert (value.tag, value.nbytes, list(value.sender)) == (1, 8, [before])
    assert_array_equal(longer, [before, 10, -1])


def main(key: str, address_file: str, rank: int, size: int) -> None:
    how: dict[str, Any] = {"names": rank, "timeout": HANG, "address_file": address_file}
    joined = sapwood.Group.create(key, **how) if rank == 0 else sapwood.Group.join(key=key, **how)
    with joined as group:
        group.wait_for(size, HANG)
        group.barrier()
        assert (group.Get_rank(), group.Get_size()) == (rank, size)
        for story in (reductions, movements, requests, messages):
            story(group, rank, size)
        group.barrier()
    print("right")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

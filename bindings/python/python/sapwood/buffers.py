"""The calls of a group for buffers of numbers: NumPy arrays, `array.array`, anything with the buffer protocol.

They are those of mpi4py with upper-case names. A buffer that gets a value of each virtual node has a block for each,
in their order; a member that carries several sends the block of its first one, and the blocks of the others stay as
they are, as do those of virtual nodes in `group.last.missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ._native import GroupResult, GroupValue
from .errors import NoValueError, TimeoutError
from .inbox import ANY_SOURCE, ANY_TAG
from .membership import GroupRequest, Membership, value_of
from .reductions import SUM, Apart, Carried, Operation, Operator, carry, keep_apart

__all__ = ["IN_PLACE", "BufferCalls", "tag_of"]

TAG_LIMIT = 1 << 62
"""Tags of values are below this."""
_GATHERING = {"reduce": "gather", "allreduce": "allgather"}
"""What brings the numbers of a reduction to those that combine them by a function of the program."""


class _InPlace:
    """What stands for the buffer that is sent where the one that receives holds the numbers."""

    def __repr__(self) -> str:
        return "sapwood.IN_PLACE"


IN_PLACE: Final = _InPlace()


class BufferCalls(Membership):
    """What a member does with buffers. Calls that begin with `I` give a request, at whose end the buffer is filled."""

    def Ibcast(self, buffer: Any, root: int = 0, **settings: Any) -> GroupRequest:
        """As `Bcast`, as a request."""
        if root in self.names:
            return self._start("broadcast", _nothing, root=root, value=bytes(_flat(buffer)), **settings)
        place = _writable("Bcast", buffer)
        return self._start("broadcast", lambda result: _fill(place, value_of(result)), root=root, **settings)

    def Bcast(self, buffer: Any, root: int = 0, **settings: Any) -> None:
        """Fills the buffer at all with that of the member that carries `root`."""
        self.Ibcast(buffer, root, **settings).wait()

    def Ireduce(
        self, sent: Any, received: Any = None, op: Operator = SUM, root: int = 0, **settings: Any
    ) -> GroupRequest:
        """As `Reduce`, as a request."""
        place = _writable("Reduce", received) if root in self.names else None
        return self._combined("reduce", "Reduce", sent, received, op, place, root=root, **settings)

    def Reduce(self, sent: Any, received: Any = None, op: Operator = SUM, root: int = 0, **settings: Any) -> None:
        """Numbers of all, combined element by element, into `received` at the member with `root`. With `bypass=True`
        other members do not wait for those below them. `op` may be a function of two one-dimensional arrays, which
        gives an array of the same length; then the numbers are gathered, and combined in the order of the virtual
        nodes by the thread that waits."""
        self.Ireduce(sent, received, op, root, **settings).wait()

    def Iallreduce(self, sent: Any, received: Any, op: Operator = SUM, **settings: Any) -> GroupRequest:
        """As `Allreduce`, as a request."""
        place = _writable("Allreduce", received)
        return self._combined("allreduce", "Allreduce", sent, received, op, place, **settings)

    def Allreduce(self, sent: Any, received: Any, op: Operator = SUM, **settings: Any) -> None:
        """As `Reduce`, and all get the result."""
        self.Iallreduce(sent, received, op, **settings).wait()

    def Ireduce_scatter(
        self,
        sent: Any,
        received: Any,
        recvcounts: Sequence[int] | None = None,
        op: Operator = SUM,
        **settings: Any,
    ) -> GroupRequest:
        """As `Reduce_scatter`, as a request."""
        place = _writable("Reduce_scatter", received)
        size, names = memoryview(sent).itemsize, list(self.everyone)
        elements = _flat(sent).nbytes // size
        if recvcounts is None:
            recvcounts = [elements // len(names)] * len(names)
        if len(recvcounts) != len(names) or sum(recvcounts) != elements or min(recvcounts, default=0) < 0:
            raise ValueError(f"Reduce_scatter: {elements} elements are no block for each of {len(names)} virtual nodes")
        own = [index for index, name in enumerate(names) if name in self.names]
        first, length = sum(recvcounts[: own[0]]), sum(recvcounts[index] for index in own)
        if place.nbytes != length * size:
            raise ValueError(f"Reduce_scatter: the buffer has {place.nbytes} bytes, and the block {length * size}")
        block = slice(first * size, (first + length) * size)
        return self._combined("allreduce", "Reduce_scatter", sent, received, op, place, block, **settings)

    def Reduce_scatter(
        self,
        sent: Any,
        received: Any,
        recvcounts: Sequence[int] | None = None,
        op: Operator = SUM,
        **settings: Any,
    ) -> None:
        """As `Allreduce`, of which each virtual node keeps its block; `recvcounts` has the elements of each, or all
        have the same number."""
        self.Ireduce_scatter(sent, received, recvcounts, op, **settings).wait()

    def Ireduce_scatter_block(self, sent: Any, received: Any, op: Operator = SUM, **settings: Any) -> GroupRequest:
        """As `Reduce_scatter_block`, as a request."""
        return self.Ireduce_scatter(sent, received, None, op, **settings)

    def Reduce_scatter_block(self, sent: Any, received: Any, op: Operator = SUM, **settings: Any) -> None:
        """As `Reduce_scatter` with blocks of one length."""
        self.Ireduce_scatter(sent, received, None, op, **settings).wait()

    def Igather(self, sent: Any, received: Any = None, root: int = 0, **settings: Any) -> GroupRequest:
        """As `Gather`, as a request."""
        if root not in self.names:
            return self._start("gather", _nothing, root=root, value=bytes(_flat(sent)), **settings)
        place, value = _writable("Gather", received), bytes(_flat(sent))
        finish = _in_blocks("Gather", place, len(value))
        return self._start("gather", finish, root=root, value=value, **settings)

    def Gather(self, sent: Any, received: Any = None, root: int = 0, **settings: Any) -> None:
        """The buffers of all, one behind the other, into `received` at the member with `root`."""
        self.Igather(sent, received, root, **settings).wait()

    def Iallgather(self, sent: Any, received: Any, **settings: Any) -> GroupRequest:
        """As `Allgather`, as a request."""
        place, value = _writable("Allgather", received), bytes(_flat(sent))
        return self._start("allgather", _in_blocks("Allgather", place, len(value)), value=value, **settings)

    def Allgather(self, sent: Any, received: Any, **settings: Any) -> None:
        """As `Gather`, and all get the buffers."""
        self.Iallgather(sent, received, **settings).wait()

    def Iscatter(self, sent: Any, received: Any, root: int = 0, **settings: Any) -> GroupRequest:
        """As `Scatter`, as a request."""
        place = _writable("Scatter", received)
        values = self._blocks("Scatter", sent) if root in self.names else None

        def finish(result: GroupResult) -> None:
            _fill(place, _joined(result))

        return self._start("scatter", finish, root=root, values=values, **settings)

    def Scatter(self, sent: Any, received: Any, root: int = 0, **settings: Any) -> None:
        """Fills `received` with this member's block of what the member with `root` sends."""
        self.Iscatter(sent, received, root, **settings).wait()

    def Ialltoall(self, sent: Any, received: Any, **settings: Any) -> GroupRequest:
        """As `Alltoall`, as a request."""
        place, values = _writable("Alltoall", received), self._blocks("Alltoall", sent)
        finish = _in_blocks("Alltoall", place, len(values[0][1]), len(self.names))
        return self._start("all_to_all", finish, values=values, **settings)

    def Alltoall(self, sent: Any, received: Any, **settings: Any) -> None:
        """Sends each virtual node its block, and fills `received` with the blocks of all for this member."""
        self.Ialltoall(sent, received, **settings).wait()

    def Isend(self, buffer: Any, dest: int, tag: int = 0, **settings: Any) -> GroupRequest:
        """As `Send`, as a request."""
        return self._start("send", all_there, root=dest, value=bytes(_flat(buffer)), tag=tag_of(tag), **settings)

    def Send(self, buffer: Any, dest: int, tag: int = 0, **settings: Any) -> None:
        """Sends a buffer to the member that carries a virtual node, which gets it by `Recv`."""
        self.Isend(buffer, dest, tag, **settings).wait()

    def Recv(
        self, buffer: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, timeout: float = 30.0
    ) -> GroupValue:
        """Fills the beginning of the buffer with the next one that was sent to this member, and gives it with its
        sender and tag. One that is too long stays, for a longer buffer."""
        place = _writable("Recv", buffer)
        value = self._take(source, tag, timeout)
        if value.nbytes > place.nbytes:
            self._inbox.restore(value)
            raise ValueError(f"Recv: the buffer has {place.nbytes} bytes, and what has come {value.nbytes}")
        place[: value.nbytes] = value.value
        return value

    def _take(self, source: int, tag: int, timeout: float) -> GroupValue:
        value = self._inbox.take(source, tag, timeout)
        if value is None:
            raise TimeoutError(f"nothing arrived within {timeout} s")
        return value

    def _combined(
        self,
        name: str,
        call: str,
        sent: Any,
        received: Any,
        op: Operator,
        place: memoryview | None,
        block: slice = slice(None),
        **settings: Any,
    ) -> GroupRequest:
        """Starts a reduction of numbers, of whose result a block comes to a place."""
        view = memoryview(received if sent is IN_PLACE else sent)
        made: Callable[[GroupResult], bytes]
        if isinstance(op, Operation):
            numbers = carry(call, view, _flat(view), op)
            settings |= {"value": numbers.value, "operation": op.name, "element": numbers.element}
            made = _carried_back(numbers)
        else:
            apart = keep_apart(call, view, _flat(view), op)
            settings |= {"value": apart.value}
            name = _GATHERING[name]
            made = _folded_here(apart)
        if place is not None and block == slice(None) and place.nbytes != view.nbytes:
            raise ValueError(f"{call}: the buffer has {place.nbytes} bytes and the numbers {view.nbytes}")

        def finish(result: GroupResult) -> None:
            if place is not None:
                place[:] = made(result)[block]

        return self._start(name, finish, **settings)

    def _blocks(self, call: str, sent: Any) -> list[tuple[int, bytes]]:
        """What is sent, in a block for each virtual node."""
        names, view = list(self.everyone), _flat(sent)
        if view.nbytes % len(names) != 0:
            raise ValueError(f"{call}: {view.nbytes} bytes are not in a block for each of {len(names)} virtual nodes")
        length = view.nbytes // len(names)
        return [(name, bytes(view[at * length : (at + 1) * length])) for at, name in enumerate(names)]


def tag_of(tag: int) -> int:
    """A tag that may be sent."""
    if not 0 <= tag < TAG_LIMIT:
        raise ValueError(f"tag: {tag} is not between 0 and 2^62")
    return tag


def all_there(result: GroupResult) -> None:
    """Raises an error where a receiver has not got the value."""
    if result.missing:
        raise NoValueError("; ".join(f"{names}: {why}" for names, why in result.missing))


def _in_blocks(call: str, place: memoryview, length: int, own: int = 1) -> Callable[[GroupResult], None]:
    """Puts the blocks of all virtual nodes to their places, `own` of each sender."""

    def finish(result: GroupResult) -> None:
        value_of(result)
        everyone = result.contributors
        for names, _ in result.missing:
            everyone = everyone | names
        if place.nbytes != len(everyone) * own * length:
            needed = f"{len(everyone) * own} blocks of {length} bytes"
            raise ValueError(f"{call}: the buffer has {place.nbytes} bytes, and what has come {needed}")
        at = {name: index * own for index, name in enumerate(everyone)}
        for name, block in sorted(result.parts, key=lambda part: part[0]):
            if len(block) != length:
                raise ValueError(f"{call}: virtual node {name} has sent {len(block)} bytes, and this member {length}")
            place[at[name] * length : (at[name] + 1) * length] = block
            at[name] += 1

    return finish


def _joined(result: GroupResult) -> bytes:
    value_of(result)
    return b"".join(block for _, block in sorted(result.parts, key=lambda part: part[0]))


def _carried_back(numbers: Carried) -> Callable[[GroupResult], bytes]:
    return lambda result: numbers.back(value_of(result))


def _folded_here(apart: Apart) -> Callable[[GroupResult], bytes]:
    def made(result: GroupResult) -> bytes:
        value_of(result)
        return apart.fold(result.parts)

    return made


def _nothing(_result: GroupResult) -> None:
    return None


def _flat(buffer: Any) -> memoryview:
    """The bytes of a buffer, in the order in which they are in memory."""
    view = memoryview(buffer)
    if not view.contiguous:
        raise ValueError("the buffer has gaps: give a contiguous one")
    if view.nbytes == 0:
        return memoryview(bytearray())
    if view.c_contiguous and len(view.format.lstrip("@")) == 1:
        return view.cast("B")
    # What Python itself casts to no bytes: columns behind one another, complex numbers, structures.
    import numpy  # noqa: PLC0415

    array = numpy.asarray(view)
    rows = array if view.c_contiguous else array.T
    return rows.reshape(-1).view(numpy.uint8).data


def _writable(call: str, buffer: Any) -> memoryview:
    if buffer is None:
        raise ValueError(f"{call}: give a buffer that receives")
    place = _flat(buffer)
    if place.readonly:
        raise ValueError(f"{call}: the buffer that receives is read-only")
    return place


def _fill(place: memoryview, value: bytes) -> None:
    if place.nbytes != len(value):
        raise ValueError(f"the buffer has {place.nbytes} bytes and the value {len(value)}")
    place[:] = value

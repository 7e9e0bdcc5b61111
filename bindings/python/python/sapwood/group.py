"""Groups: collectives between equals, with the calls of mpi4py.

    with sapwood.Group.create("key") as group:            # prints nothing; group.address is for the others
        ...
    with sapwood.Group.join("tcp:10.0.0.1:4000", "key") as group:
        settings = group.bcast(settings, root=0)
        total = group.allreduce(1.5)
        group.Allreduce(mine, theirs, op=sapwood.SUM)      # NumPy arrays and other buffers

Lower-case calls, which are here, take any object that can be pickled; upper-case ones (`buffers`) take buffers of
numbers, which are not copied into pickles. Pickles of members are trusted: all of them have the key. Each call has a
`timeout`, and `group.last` has the members that took part in the last one and the missing ones. Calls that begin with
`i` or `I` give a request with `test` and `wait`, which can be awaited as well.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any

from ._native import GroupResult, GroupValue, make_key
from .buffers import IN_PLACE, BufferCalls, all_there, tag_of
from .inbox import ANY_SOURCE, ANY_TAG
from .membership import BypassCount, GroupRequest, PartCount, ReduceCounts, value_of
from .reductions import BAND, BOR, LAND, LOR, MAX, MIN, PROD, SUM, Operator

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "BAND",
    "BOR",
    "IN_PLACE",
    "LAND",
    "LOR",
    "MAX",
    "MIN",
    "PROD",
    "SUM",
    "BypassCount",
    "Group",
    "GroupRequest",
    "PartCount",
    "ReduceCounts",
    "make_key",
]


class Group(BufferCalls):
    """One member of a group."""

    def ibcast(self, obj: Any = None, root: int = 0, **settings: Any) -> GroupRequest:
        """As `bcast`, as a request."""
        value = pickle.dumps(obj) if root in self.names else None
        return self._start("broadcast", _load, root=root, value=value, **settings)

    def bcast(self, obj: Any = None, root: int = 0, **settings: Any) -> Any:
        """The object of the member that carries `root`."""
        return self.ibcast(obj, root, **settings).wait()

    def igather(self, obj: Any, root: int = 0, **settings: Any) -> GroupRequest:
        """As `gather`, as a request."""
        finish = _load_all if root in self.names else _nothing
        return self._start("gather", finish, root=root, value=pickle.dumps(obj), **settings)

    def gather(self, obj: Any, root: int = 0, **settings: Any) -> list[Any] | None:
        """All objects, in the order of the virtual nodes, at the member that carries `root`. With `bypass=True` other
        members do not wait for those below them."""
        objects: list[Any] | None = self.igather(obj, root, **settings).wait()
        return objects

    def iallgather(self, obj: Any, **settings: Any) -> GroupRequest:
        """As `allgather`, as a request."""
        return self._start("allgather", _load_all, value=pickle.dumps(obj), **settings)

    def allgather(self, obj: Any, **settings: Any) -> list[Any]:
        """All objects, in the order of the virtual nodes."""
        objects: list[Any] = self.iallgather(obj, **settings).wait()
        return objects

    def iscatter(self, objects: Sequence[Any] | None = None, root: int = 0, **settings: Any) -> GroupRequest:
        """As `scatter`, as a request."""
        values = None
        if root in self.names:
            values = self._one_for_each("scatter: the root gives", objects)
        return self._start("scatter", lambda result: _load_all(result)[0], root=root, values=values, **settings)

    def scatter(self, objects: Sequence[Any] | None = None, root: int = 0, **settings: Any) -> Any:
        """The object of this member's virtual node, from the list that the member with `root` gives."""
        return self.iscatter(objects, root, **settings).wait()

    def ialltoall(self, objects: Sequence[Any], **settings: Any) -> GroupRequest:
        """As `alltoall`, as a request."""
        values = self._one_for_each("alltoall: give", objects)
        return self._start("all_to_all", _load_all, values=values, **settings)

    def alltoall(self, objects: Sequence[Any], **settings: Any) -> list[Any]:
        """From each member the object that it has for this one, in the order of their virtual nodes."""
        received: list[Any] = self.ialltoall(objects, **settings).wait()
        return received

    def _one_for_each(self, who: str, objects: Sequence[Any] | None) -> list[tuple[int, bytes]]:
        names = list(self.everyone)
        if objects is None or len(objects) != len(names):
            raise ValueError(f"{who} one object for each of {len(names)} virtual nodes")
        return [(name, pickle.dumps(obj)) for name, obj in zip(names, objects, strict=True)]

    def ireduce(self, obj: Any, op: Operator = SUM, root: int = 0, **settings: Any) -> GroupRequest:
        """As `reduce`, as a request."""
        finish = _folded(op) if root in self.names else _nothing
        return self._start("gather", finish, root=root, value=pickle.dumps(obj), **settings)

    def reduce(self, obj: Any, op: Operator = SUM, root: int = 0, **settings: Any) -> Any:
        """All objects combined in the order of the virtual nodes, at the member with `root`. They are
        gathered first: numbers in buffers go faster by `Reduce`."""
        return self.ireduce(obj, op, root, **settings).wait()

    def iallreduce(self, obj: Any, op: Operator = SUM, **settings: Any) -> GroupRequest:
        """As `allreduce`, as a request."""
        return self._start("allgather", _folded(op), value=pickle.dumps(obj), **settings)

    def allreduce(self, obj: Any, op: Operator = SUM, **settings: Any) -> Any:
        """As `reduce`, and all get the result."""
        return self.iallreduce(obj, op, **settings).wait()

    def ibarrier(self, **settings: Any) -> GroupRequest:
        """As `barrier`, as a request."""
        return self._start("barrier", _nothing, **settings)

    def barrier(self, **settings: Any) -> None:
        """Waits until all have called it."""
        self.ibarrier(**settings).wait()

    Barrier = barrier

    def isend(self, obj: Any, dest: int, tag: int = 0, **settings: Any) -> GroupRequest:
        """As `send`, as a request."""
        return self._start("send", all_there, root=dest, value=pickle.dumps(obj), tag=tag_of(tag), **settings)

    def send(self, obj: Any, dest: int, tag: int = 0, **settings: Any) -> None:
        """Sends an object to the member that carries a virtual node, which gets it by `recv`."""
        self.isend(obj, dest, tag, **settings).wait()

    def publish(self, obj: Any, tag: int = 0, **settings: Any) -> GroupResult:
        """Sends an object to all, which get it by `recv`; gives the members that have it and those that have not."""
        request = self._start("publish", _itself, value=pickle.dumps(obj), tag=tag_of(tag), **settings)
        result: GroupResult = request.wait()
        return result

    def recv(self, timeout: float = 30.0, *, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Any:
        """The next object that another member has sent to this one, or to all; of one sender or with one tag, if that
        is wanted. Others stay for the calls that want them."""
        return pickle.loads(self.recv_value(timeout, source=source, tag=tag).value)

    def recv_value(self, timeout: float = 30.0, *, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> GroupValue:
        """The same as bytes, with the sender and the tag."""
        return self._take(source, tag, timeout)


def _load(result: GroupResult) -> Any:
    return pickle.loads(value_of(result))


def _load_all(result: GroupResult) -> list[Any]:
    value_of(result)
    return [pickle.loads(value) for _, value in sorted(result.parts, key=lambda part: part[0])]


def _folded(op: Operator) -> Callable[[GroupResult], Any]:
    return lambda result: fold(op, _load_all(result))


def _nothing(_result: GroupResult) -> None:
    return None


def _itself(result: GroupResult) -> GroupResult:
    return result

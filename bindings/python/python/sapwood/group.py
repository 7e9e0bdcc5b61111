"""Groups: collectives between equals, with the calls of mpi4py.

    with sapwood.Group.create("key") as group:            # prints nothing; group.address is for the others
        ...
    with sapwood.Group.join("tcp:10.0.0.1:4000", "key") as group:
        settings = group.bcast(settings, root=0)
        total = group.allreduce(1.5)
        group.Allreduce(mine, theirs, op=sapwood.SUM)      # NumPy arrays and other buffers

Lower-case calls take any object that can be pickled; upper-case ones take buffers of numbers, which are not
copied into pickles. Pickles of members are trusted: all of them have the key. Each call has a `timeout`, and
`group.last` has who took part in the last one and who is missing. Calls that begin with `i` give a request
with `test` and `wait`, which can be awaited as well.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Generator, Sequence
from functools import reduce as fold
from os import PathLike, fspath
from typing import Any, NamedTuple

from ._native import GroupCall, GroupMember, GroupResult, GroupValue, RankSet, make_key
from .errors import NoValueError, TimeoutError

__all__ = ["LAND", "LOR", "MAX", "MIN", "PROD", "SUM", "BypassCount", "Group", "GroupRequest", "make_key"]

Operator = Callable[[Any, Any], Any]


class _Operation:
    """A built-in operation: for buffers by name, for objects as a function."""

    def __init__(self, name: str, function: Operator) -> None:
        self.name = name
        self.function = function

    def __call__(self, one: Any, other: Any) -> Any:
        return self.function(one, other)

    def __repr__(self) -> str:
        return f"sapwood.{self.name}"


SUM = _Operation("sum", lambda one, other: one + other)
PROD = _Operation("product", lambda one, other: one * other)
MIN = _Operation("min", min)
MAX = _Operation("max", max)
LAND = _Operation("and", lambda one, other: one & other)
LOR = _Operation("or", lambda one, other: one | other)

_ELEMENTS = {"B": "byte", "b": "byte", "c": "byte", "i": "i32", "f": "f32", "d": "f64", "q": "i64", "l": "i64"}

TAG_LIMIT = 1 << 62
"""Tags of values are below this."""

ASYNC_SECONDS = 0.05
"""How often an awaited request is looked at, where its descriptor tells of others."""


class GroupRequest:
    """An operation under way."""

    def __init__(self, group: Group, call: GroupCall, finish: Callable[[GroupResult], Any]) -> None:
        self._group = group
        self._call = call
        self._finish = finish

    def test(self) -> tuple[bool, Any]:
        """Whether it has ended, and its result."""
        result = self._call.test()
        return (False, None) if result is None else (True, self._end(result))

    def wait(self) -> Any:
        """Its result, which comes within the operation's timeout."""
        return self._end(self._call.wait())

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait_async().__await__()

    async def _wait_async(self) -> Any:
        while (result := self._call.test()) is None:
            await asyncio.sleep(ASYNC_SECONDS / 50)
        return self._end(result)

    def _end(self, result: GroupResult) -> Any:
        self._group.last = result
        return self._finish(result)


class BypassCount(NamedTuple):
    """Reductions that were left early: not passed on yet, passed on, or ended otherwise."""

    open: int
    passed_on: int
    failed: int


class Group:
    """One member of a group."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self.last: GroupResult | None = None

    @classmethod
    def create(cls, key: str | PathLike[str] | None = None, **settings: Any) -> Group:
        """The first member of a new group."""
        return cls._open(key, None, **settings)

    @classmethod
    def join(cls, address: str, key: str | PathLike[str] | None = None, **settings: Any) -> Group:
        """A member of the group of the one at an address."""
        return cls._open(key, address, **settings)

    @classmethod
    def _open(
        cls,
        key: str | PathLike[str] | None,
        address: str | None,
        *,
        names: Any = None,
        space: int = 1 << 16,
        listen: str = "tcp:127.0.0.1:0",
        site: int = 0,
        tree: str = "adaptive",
        timeout: float = 30.0,
        encryption: bool | None = None,
        shared_memory: bool = True,
    ) -> Group:
        path = None if key is None else fspath(key)
        if isinstance(names, int):
            names = [names]
        return cls(
            GroupMember(path, address, names, space, listen, site, tree, timeout, encryption, shared_memory)
        )

    @property
    def address(self) -> str:
        """Where others dial this member."""
        return self._member.address

    @property
    def names(self) -> RankSet:
        """The virtual nodes that this member carries."""
        return self._member.names

    @property
    def everyone(self) -> RankSet:
        """The virtual nodes that are carried by members, as this one knows them."""
        return self._member.everyone

    @property
    def lost(self) -> int:
        """Values that were dropped, since `recv` did not take them."""
        return self._member.lost

    def Get_rank(self) -> int:
        """The first virtual node of this member."""
        return next(iter(self.names))

    def Get_size(self) -> int:
        """How many virtual nodes are carried."""
        return len(self.everyone)

    rank = property(Get_rank)
    size = property(Get_size)

    def fileno(self) -> int:
        """Readable while there is news, for programs with a loop of their own; then call `clear`."""
        return self._member.fileno()

    def clear(self) -> None:
        """Makes the descriptor unreadable until there is news again."""
        self._member.clear()

    def wait_for(self, count: int, timeout: float = 30.0) -> None:
        """Waits until this many virtual nodes are carried."""
        self._member.wait_for(count, timeout)

    def leave(self) -> None:
        """Leaves the group."""
        self._member.leave()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.leave()

    @property
    def bypassed(self) -> BypassCount:
        """What has become of the reductions that this member has left early."""
        return BypassCount(*self._member.bypassed)

    def __repr__(self) -> str:
        return "<sapwood.Group, left>" if self._member.closed else f"<sapwood.Group {self.names} at {self.address}>"

    # Objects.

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

    def scatter(self, objects: Sequence[Any] | None = None, root: int = 0, **settings: Any) -> Any:
        """The object of this member's virtual node, from the list that the member with `root` gives."""
        values = None
        if root in self.names:
            names = list(self.everyone)
            if objects is None or len(objects) != len(names):
                raise ValueError(f"scatter: the root gives one object for each of {len(names)} virtual nodes")
            values = [(name, pickle.dumps(obj)) for name, obj in zip(names, objects, strict=True)]
        request = self._start("scatter", _load_all, root=root, values=values, **settings)
        return request.wait()[0]

    def alltoall(self, objects: Sequence[Any], **settings: Any) -> list[Any]:
        """From each member the object that it has for this one, in the order of the virtual nodes by which members send."""
        names = list(self.everyone)
        if len(objects) != len(names):
            raise ValueError(f"alltoall: give one object for each of {len(names)} virtual nodes")
        values = [(name, pickle.dumps(obj)) for name, obj in zip(names, objects, strict=True)]
        received: list[Any] = self._start("all_to_all", _load_all, values=values, **settings).wait()
        return received

    def reduce(self, obj: Any, op: Operator = SUM, root: int = 0, **settings: Any) -> Any:
        """All objects combined in the order of the virtual nodes, at the member with `root`. They are
        gathered first: numbers in buffers go faster by `Reduce`."""
        objects = self.gather(obj, root, **settings)
        return None if objects is None else fold(op, objects)

    def allreduce(self, obj: Any, op: Operator = SUM, **settings: Any) -> Any:
        """As `reduce`, and all get the result."""
        return fold(op, self.allgather(obj, **settings))

    def ibarrier(self, **settings: Any) -> GroupRequest:
        """As `barrier`, as a request."""
        return self._start("barrier", _nothing, **settings)

    def barrier(self, **settings: Any) -> None:
        """Waits until all have called it."""
        self.ibarrier(**settings).wait()

    Barrier = barrier

    def isend(self, obj: Any, dest: int, tag: int = 0, **settings: Any) -> GroupRequest:
        """As `send`, as a request."""
        return self._start("send", _all_there, root=dest, value=pickle.dumps(obj), tag=_tag(tag), **settings)

    def send(self, obj: Any, dest: int, tag: int = 0, **settings: Any) -> None:
        """Sends an object to the member that carries a virtual node, which gets it by `recv`."""
        self.isend(obj, dest, tag, **settings).wait()

    def publish(self, obj: Any, tag: int = 0, **settings: Any) -> GroupResult:
        """Sends an object to all, who get it by `recv`; gives who has it and who has not."""
        finish: Callable[[GroupResult], Any] = _itself
        result: GroupResult = self._start("publish", finish, value=pickle.dumps(obj), tag=_tag(tag), **settings).wait()
        return result

    def recv(self, timeout: float = 30.0) -> Any:
        """The next object that another member has sent to this one, or to all."""
        return pickle.loads(self.recv_value(timeout).value)

    def recv_value(self, timeout: float = 30.0) -> GroupValue:
        """The same as bytes, with the sender and the tag."""
        value = self._member.receive(timeout)
        if value is None:
            raise TimeoutError(f"nothing arrived within {timeout} s")
        return value

    # Buffers.

    def Bcast(self, buffer: Any, root: int = 0, **settings: Any) -> None:
        """Fills the buffer at all with that of the member that carries `root`."""
        is_root = root in self.names
        value = bytes(_flat(buffer)) if is_root else None
        request = self._start("broadcast", _itself, root=root, value=value, **settings)
        result = request.wait()
        if not is_root:
            _fill(buffer, _value(result))

    def Reduce(self, sent: Any, received: Any = None, op: _Operation = SUM, root: int = 0, **settings: Any) -> None:
        """Numbers of all, combined element by element, into `received` at the member with `root`. With `bypass=True`
        other members do not wait for those below them."""
        result = self._numbers("reduce", sent, op, root, settings)
        if root in self.names:
            _fill(received, _value(result))

    def Allreduce(self, sent: Any, received: Any, op: _Operation = SUM, **settings: Any) -> None:
        """As `Reduce`, and all get the result."""
        root = settings.pop("root", None)
        _fill(received, _value(self._numbers("allreduce", sent, op, root, settings)))

    def _numbers(self, name: str, sent: Any, op: _Operation, root: int | None, settings: dict[str, Any]) -> GroupResult:
        view = memoryview(sent)
        element = _ELEMENTS.get(view.format.lstrip("<=@"))
        if element is None:
            raise TypeError(f"{name}: numbers of type '{view.format}' are not combined; use int32, int64 or floats")
        settings |= {"root": root, "value": bytes(_flat(view)), "operation": op.name, "element": element}
        result: GroupResult = self._start(name, _itself, **settings).wait()
        return result

    def _start(self, name: str, finish: Callable[[GroupResult], Any], **settings: Any) -> GroupRequest:
        return GroupRequest(self, self._member.start(name, **settings), finish)


def _tag(tag: int) -> int:
    if not 0 <= tag < TAG_LIMIT:
        raise ValueError(f"tag: {tag} is not between 0 and 2^62")
    return tag


def _value(result: GroupResult) -> bytes:
    if result.value is None:
        raise NoValueError("; ".join(f"{names}: {why}" for names, why in result.missing) or "no value")
    return result.value


def _load(result: GroupResult) -> Any:
    return pickle.loads(_value(result))


def _load_all(result: GroupResult) -> list[Any]:
    _value(result)
    return [pickle.loads(value) for _, value in sorted(result.parts, key=lambda part: part[0])]


def _nothing(_result: GroupResult) -> None:
    return None


def _itself(result: GroupResult) -> GroupResult:
    return result


def _all_there(result: GroupResult) -> None:
    if result.missing:
        raise NoValueError("; ".join(f"{names}: {why}" for names, why in result.missing))


def _flat(buffer: Any) -> memoryview:
    view = memoryview(buffer)
    if not view.contiguous:
        raise ValueError("the buffer has gaps: give a contiguous one")
    return view.cast("B")


def _fill(buffer: Any, value: bytes) -> None:
    place = _flat(buffer)
    if place.nbytes != len(value):
        raise ValueError(f"the buffer has {place.nbytes} bytes and the value {len(value)}")
    place[:] = value

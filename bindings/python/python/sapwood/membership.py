"""One member of a group, and its operations under way: what calls of all kinds share.

`GroupRequest` is an operation that was started; `Membership` opens the member and starts operations. The calls
themselves are in `buffers` and `group`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from os import PathLike
from typing import Any, NamedTuple, Self

from ._native import GroupCall, GroupEntry, GroupMember, GroupResult, RankSet
from .errors import NoValueError
from .inbox import Inbox
from .waiting import until_done

__all__ = ["BypassCount", "GroupRequest", "Membership", "PartCount", "ReduceCounts", "value_of"]


class GroupRequest:
    """An operation under way."""

    def __init__(self, group: Membership, call: GroupCall, finish: Callable[[GroupResult], Any]) -> None:
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

    def fileno(self) -> int:
        """Readable when this or another request of the group may have ended; while one is awaited, asyncio reads it."""
        return self._call.fileno()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait_async().__await__()

    async def _wait_async(self) -> Any:
        return self._end(await until_done(self._call))

    def _end(self, result: GroupResult) -> Any:
        self._group.last = result
        return self._finish(result)


class BypassCount(NamedTuple):
    """Reductions that were left early: not passed on yet, passed on, or ended otherwise."""

    open: int
    passed_on: int
    failed: int


class PartCount(NamedTuple):
    """Parts of reductions that came to a member, their bytes, and how many of both were copied into a value. What is
    folded into a value that lies there is not copied."""

    parts: int
    bytes: int
    copied_parts: int
    copied_bytes: int


class ReduceCounts(NamedTuple):
    """Parts that came after the member's own call and before it; calls with `bypass=True` that were to wait for values
    that are almost there, and those of them whose values came meanwhile."""

    expected: PartCount
    unexpected: PartCount
    grace_waits: int
    grace_met: int


class Membership:
    """One member of a group, without its calls."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._inbox = Inbox(member)
        self.last: GroupResult | None = None

    @classmethod
    def create(
        cls, key: str | PathLike[str] | None = None, *, address_file: str | PathLike[str] | None = None, **settings: Any
    ) -> Self:
        """The first member of a new group. `address_file` is written with its address, in the place of an earlier
        member's, and removed when it leaves."""
        return cls._open(GroupEntry.first(address_file), key, **settings)

    @classmethod
    def join(
        cls,
        address: str | None = None,
        key: str | PathLike[str] | None = None,
        *,
        address_file: str | PathLike[str] | None = None,
        address_timeout: float = 30.0,
        take: Any = None,
        **settings: Any,
    ) -> Self:
        """A member of the group of the one at an address, or of the one whose address is in a file. As long as
        `address_timeout` says, the file is waited for, and for a process that listens at the address in it.

        `take` names virtual nodes of one member, which keeps others: this one takes them over, and `join` returns when
        it has them. What is sent to them meanwhile is delivered by one of the two."""
        if address is not None and address_file is None:
            entry = GroupEntry.at(address, take)
        elif address is None and address_file is not None:
            entry = GroupEntry.by_file(address_file, address_timeout, take)
        else:
            raise ValueError("join: give an address or an address_file, and not both")
        return cls._open(entry, key, **settings)

    @classmethod
    def _open(
        cls,
        entry: GroupEntry,
        key: str | PathLike[str] | None,
        *,
        names: Any = None,
        space: int = 1 << 16,
        listen: str = "tcp:127.0.0.1:0",
        site: int = 0,
        tree: str = "adaptive",
        timeout: float = 30.0,
        encryption: bool | None = None,
        shared_memory: bool = True,
        grace: float | None = None,
    ) -> Self:
        """`grace` is the longest time, in seconds, for which a call with `bypass=True` waits where earlier values came
        within it: 0.0001 if none is given, 0.01 at most, and 0 for no wait."""
        if isinstance(names, int):
            names = [names]
        member = GroupMember(entry, key, names, space, listen, site, tree, timeout, encryption, shared_memory, grace)
        return cls(member)

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
        return self._member.lost + self._inbox.lost

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

    def leave(self, to: int | None = None) -> None:
        """Leaves the group. The member that carries the virtual node `to` is handed those of this one, and what is
        sent to them meanwhile is delivered by one of the two; without it, no member carries them afterwards."""
        self._member.leave(to)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.leave()

    @property
    def bypassed(self) -> BypassCount:
        """What has become of the reductions that this member has left early."""
        return BypassCount(*self._member.bypassed)

    @property
    def reduce_counts(self) -> ReduceCounts:
        """What this member has done with the parts of reductions that came to it, and how often calls waited before
        they left."""
        expected, unexpected, waits, met = self._member.reduce_counts
        return ReduceCounts(PartCount(*expected), PartCount(*unexpected), waits, met)

    def __repr__(self) -> str:
        return "<sapwood.Group, left>" if self._member.closed else f"<sapwood.Group {self.names} at {self.address}>"

    def _start(self, name: str, finish: Callable[[GroupResult], Any], **settings: Any) -> GroupRequest:
        return GroupRequest(self, self._member.start(name, **settings), finish)


def value_of(result: GroupResult) -> bytes:
    """The value of a result; an error with the reasons where there is none."""
    if result.value is None:
        raise NoValueError("; ".join(f"{names}: {why}" for names, why in result.missing) or "no value")
    return result.value

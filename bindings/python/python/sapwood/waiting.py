"""Waiting for a network, or for an operation of a group, in an event loop of asyncio.

The network's descriptor is watched while something is awaited, and at no other time. What has come is
taken by `try_recv`, which also lets the network do what is due by the clock, such as ending a wave at its
deadline: `idle_time` says when that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from .errors import ClosedError, EndedError, TimeoutError

if TYPE_CHECKING:
    from ._native import Answer, BackEnd, GroupCall, GroupResult, Packet, Stream

T = TypeVar("T", covariant=True)

CLOSED_SECONDS = 0.2
"""How soon a waiting task notices that its source was closed meanwhile."""


NO_ROOM = "no room on the stream"


class Waitable(Protocol):
    """What a loop can wait for: a stream, or a back-end."""

    def fileno(self) -> int: ...
    def idle_time(self) -> float | None: ...


class Source(Waitable, Protocol[T]):
    """What receives."""

    def try_recv(self) -> T | None: ...


class _Watch:
    """All that wait for one descriptor in one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        self.loop = loop
        self.descriptor = descriptor
        # Each with what makes the descriptor unreadable, where a look at what has come does not.
        self.waiting: dict[asyncio.Future[None], Callable[[], None] | None] = {}

    async def wait(self, seconds: float, clear: Callable[[], None] | None = None) -> None:
        """Until the descriptor is readable, or the time is over."""
        readable: asyncio.Future[None] = self.loop.create_future()
        if not self.waiting:
            self.loop.add_reader(self.descriptor, self._wake)
        self.waiting[readable] = clear
        try:
            await asyncio.wait((readable,), timeout=seconds)
        finally:
            del self.waiting[readable]
            if not self.waiting:
                self.loop.remove_reader(self.descriptor)
                # Its number may be that of another descriptor by the next time.
                _watches[self.loop].pop(self.descriptor, None)

    def _wake(self) -> None:
        # All are cleared before any looks at what has come: what comes meanwhile makes it readable again.
        for clear in self.waiting.values():
            if clear is not None:
                clear()
        for readable in self.waiting:
            if not readable.done():
                readable.set_result(None)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _Watch]] = WeakKeyDictionary()


def _watch(descriptor: int) -> _Watch:
    """The one watch of a descriptor in the loop that runs."""
    loop = asyncio.get_running_loop()
    watches = _watches.setdefault(loop, {})
    if descriptor not in watches:
        watches[descriptor] = _Watch(loop, descriptor)
    return watches[descriptor]


async def until(source: Waitable, attempt: Callable[[], T | None], timeout: float | None, late: str) -> T:
    """What an attempt gives as soon as it gives something; it must not wait itself."""
    got = attempt()
    if got is not None:
        return got
    loop = asyncio.get_running_loop()
    descriptor = source.fileno()
    end = None if timeout is None else loop.time() + timeout
    while got is None:
        left = None if end is None else end - loop.time()
        if left is not None and left <= 0:
            raise TimeoutError(f"{late} within {timeout} s")
        limits = (left, source.idle_time(), CLOSED_SECONDS)
        await _watch(descriptor).wait(min(limit for limit in limits if limit is not None))
        got = attempt()
    return got


async def until_done(call: GroupCall) -> GroupResult:
    """The result of a group's operation, which comes within the operation's deadline.

    All requests of a group have one descriptor. The call is looked at without it now and then, since a loop of another
    thread, or the program itself, may have made it unreadable.
    """
    while (result := call.test()) is None:
        await _watch(call.fileno()).wait(CLOSED_SECONDS, call.clear)
    return result


async def receive(source: Source[T], timeout: float | None = None) -> T:
    """The next that a stream or a back-end receives."""
    return await until(source, source.try_recv, timeout, "nothing arrived")


async def ask(
    stream: Stream, values: tuple[Any, ...], tag: int, format: str | None, timeout: float | None
) -> Answer:
    """The answer to a question, which is given up when this is cancelled."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout

    def begin() -> int | None:
        return stream._begin_question(values, tag, format)

    number = await until(stream, begin, timeout, NO_ROOM)
    left = None if end is None else max(end - loop.time(), 0.0)
    try:
        return await until(stream, lambda: stream._take_answer(number), left, "no answer")
    finally:
        stream._forget_question(number)


async def send(
    stream: Stream,
    values: tuple[Any, ...],
    tag: int,
    to: Any,
    format: str | None,
    timeout: float | None,
) -> None:
    """Sends values down as soon as there is room."""
    await until(stream, lambda: stream.try_send(*values, tag=tag, to=to, format=format) or None, timeout, NO_ROOM)


async def send_up(
    back_end: BackEnd,
    stream: int,
    values: tuple[Any, ...],
    tag: int,
    format: str | None,
    timeout: float | None,
) -> None:
    """Sends values up as soon as there is room, and writes them."""
    await until(
        back_end, lambda: back_end.try_send(stream, *values, tag=tag, format=format) or None, timeout, NO_ROOM
    )
    back_end.flush()


async def reply(
    back_end: BackEnd, to: Packet, values: tuple[Any, ...], format: str | None, timeout: float | None
) -> bool:
    """Answers a packet as soon as there is room."""
    return await until(back_end, lambda: back_end._try_reply(to, values, format), timeout, NO_ROOM)


async def next_of(source: Source[T]) -> T:
    """The same for `async for`, which the end of the network ends."""
    try:
        return await receive(source)
    except (ClosedError, EndedError):
        raise StopAsyncIteration from None

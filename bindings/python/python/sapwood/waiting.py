"""Waiting for a network in an event loop of asyncio.

The network's descriptor is watched while something is awaited, and at no other time. What has come is
taken by `try_recv`, which also lets the network do what is due by the clock, such as ending a wave at its
deadline: `idle_time` says when that is.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from .errors import ClosedError, EndedError, TimeoutError

T = TypeVar("T", covariant=True)

CLOSED_SECONDS = 0.2
"""How soon a waiting task is told that its source was closed meanwhile."""


class Source(Protocol[T]):
    """What can be awaited: a stream, or a back-end."""

    def try_recv(self) -> T | None: ...
    def fileno(self) -> int: ...
    def idle_time(self) -> float | None: ...


class _Watch:
    """All that wait for one descriptor in one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        self.loop = loop
        self.descriptor = descriptor
        self.waiting: set[asyncio.Future[None]] = set()

    async def wait(self, seconds: float) -> None:
        """Until the descriptor is readable, or the time is over."""
        readable: asyncio.Future[None] = self.loop.create_future()
        if not self.waiting:
            self.loop.add_reader(self.descriptor, self._wake)
        self.waiting.add(readable)
        try:
            await asyncio.wait((readable,), timeout=seconds)
        finally:
            self.waiting.discard(readable)
            if not self.waiting:
                self.loop.remove_reader(self.descriptor)

    def _wake(self) -> None:
        for readable in self.waiting:
            if not readable.done():
                readable.set_result(None)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _Watch]] = WeakKeyDictionary()


async def receive(source: Source[T], timeout: float | None = None) -> T:
    """The next that a stream or a back-end receives."""
    received = source.try_recv()
    if received is not None:
        return received
    loop = asyncio.get_running_loop()
    descriptor = source.fileno()
    watches = _watches.setdefault(loop, {})
    watch = watches.setdefault(descriptor, _Watch(loop, descriptor))
    until = None if timeout is None else loop.time() + timeout
    while received is None:
        left = None if until is None else until - loop.time()
        if left is not None and left <= 0:
            raise TimeoutError(f"nothing came within {timeout} s")
        limits = (left, source.idle_time(), CLOSED_SECONDS)
        await watch.wait(min(limit for limit in limits if limit is not None))
        received = source.try_recv()
    return received


async def next_of(source: Source[T]) -> T:
    """The same for `async for`, which the end of the network ends."""
    try:
        return await receive(source)
    except (ClosedError, EndedError):
        raise StopAsyncIteration from None

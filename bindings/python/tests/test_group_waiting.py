"""Groups in event loops: what is awaited is woken by the group's descriptor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import sapwood
from conftest import HANG
from sapwood import waiting

Pair = tuple[sapwood.Group, sapwood.Group]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Two members, whose requests are not looked at unless their descriptor is readable."""
    monkeypatch.setattr(waiting, "CLOSED_SECONDS", 10 * HANG)
    key = tmp_path / "key"
    sapwood.make_key(key)
    with sapwood.Group.create(key, names=0, timeout=2 * HANG) as first:
        with sapwood.Group.join(first.address, key, names=1, timeout=2 * HANG) as second:
            first.wait_for(2, HANG)
            second.wait_for(2, HANG)
            yield first, second


def is_watched(group: sapwood.Group) -> bool:
    """Whether the loop that runs has a reader of the group's descriptor; it has none afterwards."""
    return asyncio.get_running_loop().remove_reader(group.fileno())


async def until_waited_for(group: sapwood.Group, count: int) -> None:
    """Lets the other tasks of the loop run until this many of them wait for the group's descriptor."""
    loop = asyncio.get_running_loop()
    end = loop.time() + HANG
    while (found := waiters(group)) != count:
        assert loop.time() < end, f"{found} tasks wait for the group, and not {count}"
        await asyncio.sleep(0)


def waiters(group: sapwood.Group) -> int:
    """How many tasks of the loop that runs wait for the group's descriptor."""
    watch = waiting._watches.get(asyncio.get_running_loop(), {}).get(group.fileno())
    return 0 if watch is None else len(watch.waiting)


def test_two_requests_of_one_member_are_awaited_at_once(pair: Pair) -> None:
    one, other = pair

    async def story() -> None:
        barrier = asyncio.ensure_future(_awaited(one.ibarrier(number=1)))
        total = asyncio.ensure_future(_awaited(one.iallreduce(1, number=2)))
        # The later one ends first, and the earlier one is still waited for.
        assert await asyncio.wait_for(_awaited(other.iallreduce(2, number=2)), HANG) == 3
        assert await asyncio.wait_for(total, HANG) == 3
        assert not barrier.done()
        await asyncio.wait_for(_awaited(other.ibarrier(number=1)), HANG)
        await asyncio.wait_for(barrier, HANG)
        assert not is_watched(one)
        assert not is_watched(other)

    asyncio.run(story())


def test_a_cancelled_wait_leaves_no_reader_and_the_request_goes_on(pair: Pair) -> None:
    one, other = pair

    async def story() -> None:
        request = one.iallgather("one")
        tasks = [asyncio.ensure_future(_awaited(request)) for _ in range(2)]
        await until_waited_for(one, 2)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert not tasks[1].done()
        tasks[1].cancel()
        await asyncio.wait(tasks, timeout=HANG)
        assert not is_watched(one)
        theirs = other.iallgather("other")
        assert await asyncio.wait_for(_awaited(request), HANG) == ["one", "other"]
        assert await asyncio.wait_for(_awaited(theirs), HANG) == ["one", "other"]
        assert not is_watched(one)
        assert not is_watched(other)

    asyncio.run(story())


def test_a_member_that_leaves_ends_what_is_awaited(pair: Pair) -> None:
    one, _ = pair

    async def story() -> None:
        task = asyncio.ensure_future(_awaited(one.ibarrier()))
        await until_waited_for(one, 1)
        await asyncio.to_thread(one.leave)
        with pytest.raises(sapwood.EndedError):
            await asyncio.wait_for(task, HANG)

    asyncio.run(story())


async def _awaited(request: sapwood.GroupRequest) -> object:
    return await request

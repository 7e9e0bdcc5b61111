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
        waiters = [asyncio.ensure_future(_awaited(request)) for _ in range(2)]
        await asyncio.sleep(0.05)
        waiters[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiters[0]
        assert not waiters[1].done()
        waiters[1].cancel()
        await asyncio.wait(waiters, timeout=HANG)
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
        await asyncio.sleep(0.05)
        await asyncio.to_thread(one.leave)
        with pytest.raises(sapwood.EndedError):
            await asyncio.wait_for(task, HANG)

    asyncio.run(story())


async def _awaited(request: sapwood.GroupRequest) -> object:
    return await request

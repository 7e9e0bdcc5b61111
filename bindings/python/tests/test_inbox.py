"""The inbox of a member: what it looks at, in which order it gives values, and what it drops."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Condition, Event, Thread
from typing import cast

import pytest
from conftest import HANG
from sapwood import inbox
from sapwood._native import GroupMember, GroupValue
from sapwood.inbox import ANY_SOURCE, ANY_TAG, Inbox


class Value:
    """A value of sender 0, which counts how often its tag is looked at."""

    def __init__(self, tag: int, nbytes: int = 0) -> None:
        self._tag = tag
        self.nbytes = nbytes
        self.sender = {0}
        self.looks = 0

    @property
    def tag(self) -> int:
        self.looks += 1
        return self._tag


class Member:
    """A member to which these values have come."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self.values = deque(values)
        self.meanwhile: Callable[[], None] = lambda: None

    def receive(self, _timeout: float) -> Value | None:
        self.meanwhile()
        return self.values.popleft() if self.values else None


class WatchedCondition(Condition):
    """A condition that says when a thread waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = Event()

    def wait(self, timeout: float | None = None) -> bool:
        # The lock is still held: a thread that has it after this knows that the thread waits.
        self.waits.set()
        return super().wait(timeout)


def inbox_of(member: Member) -> Inbox:
    return Inbox(cast(GroupMember, member))


def native(value: Value) -> GroupValue:
    return cast(GroupValue, value)


def take(place: Inbox, tag: int, timeout: float) -> object:
    """The oldest value of sender 0 with this tag."""
    return place.take(0, tag, timeout)


def taken(place: Inbox, count: int) -> list[object]:
    """The oldest values, whatever their tags."""
    return [place.take(ANY_SOURCE, ANY_TAG, 0.0) for _ in range(count)]


def test_a_call_looks_once_at_each_value_that_comes() -> None:
    others, wanted = [Value(1) for _ in range(100)], Value(2)
    place = inbox_of(Member([*others, wanted]))
    assert take(place, 2, HANG) is wanted
    assert [value.looks for value in others] == [1] * 100


def test_a_call_looks_once_at_each_value_that_is_held() -> None:
    held, later, wanted = [Value(1) for _ in range(100)], [Value(1) for _ in range(100)], Value(2)
    member = Member(held)
    place = inbox_of(member)
    assert take(place, 2, 0.0) is None
    member.values.extend([*later, wanted])
    assert take(place, 2, HANG) is wanted
    assert [value.looks for value in held] == [2] * 100
    assert [value.looks for value in later] == [1] * 100


def test_what_is_put_back_while_a_call_receives_comes_before_what_is_received() -> None:
    older, newer = Value(1), Value(1)
    member = Member([newer])
    place = inbox_of(member)
    member.meanwhile = lambda: place.restore(native(older))
    assert take(place, 1, HANG) is older
    member.meanwhile = lambda: None
    assert taken(place, 2) == [newer, None]


def test_what_is_put_back_while_nothing_comes_is_found_within_the_time() -> None:
    older = Value(1)
    member = Member()
    place = inbox_of(member)
    member.meanwhile = lambda: place.restore(native(older))
    assert take(place, 1, 0.0) is older


def test_a_thread_that_waits_gets_what_another_has_received_for_it() -> None:
    wanted = Value(1)
    member = Member([wanted])
    place = inbox_of(member)
    condition = place._changed = WatchedCondition()
    got: list[object] = []
    waiting = Thread(target=lambda: got.append(take(place, 1, HANG)))

    def meanwhile() -> None:
        member.meanwhile = lambda: None
        waiting.start()
        assert condition.waits.wait(HANG), "the other thread does not wait"

    member.meanwhile = meanwhile
    assert take(place, 2, 0.0) is None
    waiting.join(HANG)
    assert got == [wanted]


def test_the_oldest_are_dropped_by_their_bytes_and_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "HELD_BYTES_MAX", 4 * inbox.VALUE_BYTES)
    large = Value(1, nbytes=2 * inbox.VALUE_BYTES)
    empty = [Value(1) for _ in range(3)]
    place = inbox_of(Member([large, empty[0], empty[1], empty[2]]))
    assert take(place, 2, 0.0) is None
    assert place.lost == 1
    assert taken(place, 4) == [*empty, None]


def test_what_was_taken_or_put_back_keeps_the_count_of_bytes_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "HELD_BYTES_MAX", 2 * inbox.VALUE_BYTES)
    first, second, third = Value(1), Value(1), Value(1)
    member = Member([first, second])
    place = inbox_of(member)
    assert take(place, 2, 0.0) is None
    for _ in range(3):
        assert taken(place, 1) == [first]
        place.restore(native(first))
    # There is room for two of them, neither more nor fewer.
    assert place.lost == 0
    member.values.append(third)
    assert take(place, 2, 0.0) is None
    assert place.lost == 1
    assert taken(place, 3) == [second, third, None]

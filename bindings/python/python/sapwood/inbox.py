"""Values that have come for a member, and that no call has taken yet.

The member gives them in the order in which they came. A call that wants those of one sender or with one tag leaves
the others here, for the calls that want them.
"""

from __future__ import annotations

import time
from collections import deque
from threading import Condition

from ._native import GroupMember, GroupValue

__all__ = ["ANY_SOURCE", "ANY_TAG", "Inbox"]

ANY_SOURCE = -1
"""Any sender."""

ANY_TAG = -1
"""Any tag."""

HELD_BYTES_MAX = 256 << 20
"""Values that no call wants take at most this many bytes; the oldest are dropped and counted."""

VALUE_BYTES = 512
"""What a value takes beside its bytes, so that those without any have a limit too."""


class Inbox:
    """What was received and not asked for, and the thread that receives."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._held: deque[GroupValue] = deque()
        self._held_bytes = 0
        self._changed = Condition()
        # One thread at a time takes values from the member, so that those of a sender stay in order.
        self._has_receiver = False
        # How many were put back, by which a thread that has received sees whether it must look again.
        self._restored = 0
        self.lost = 0

    def take(self, source: int, tag: int, timeout: float) -> GroupValue | None:
        """The oldest value of this sender with this tag; none after the time."""
        until = time.monotonic() + timeout
        with self._changed:
            found = self._matching(source, tag)
            while found is None:
                left = max(until - time.monotonic(), 0.0)
                if not self._has_receiver:
                    restored = self._restored
                    value = self._receive(left)
                    # No other thread receives meanwhile, but one may put back what is older than what has come.
                    if self._restored != restored:
                        found = self._matching(source, tag)
                    if found is None and value is not None and _fits(value, source, tag):
                        return value
                    if value is not None:
                        self._hold(value)
                    elif left == 0.0:
                        return found
                elif left == 0.0:
                    return None
                else:
                    self._changed.wait(left)
                    found = self._matching(source, tag)
            return found

    def restore(self, value: GroupValue) -> None:
        """Puts back what was taken, as the oldest."""
        with self._changed:
            self._held.appendleft(value)
            self._held_bytes += _size(value)
            self._restored += 1
            self._changed.notify_all()

    def _receive(self, left: float) -> GroupValue | None:
        """Waits for the next value, while other threads may look at those that are here."""
        self._has_receiver = True
        self._changed.release()
        try:
            return self._member.receive(left)
        finally:
            self._changed.acquire()
            self._has_receiver = False
            self._changed.notify_all()

    def _hold(self, value: GroupValue) -> None:
        self._held.append(value)
        self._held_bytes += _size(value)
        while self._held_bytes > HELD_BYTES_MAX and len(self._held) > 1:
            self._held_bytes -= _size(self._held.popleft())
            self.lost += 1

    def _matching(self, source: int, tag: int) -> GroupValue | None:
        for index, value in enumerate(self._held):
            if _fits(value, source, tag):
                del self._held[index]
                self._held_bytes -= _size(value)
                return value
        return None


def _fits(value: GroupValue, source: int, tag: int) -> bool:
    """Whether a value is of this sender and has this tag."""
    return tag in (ANY_TAG, value.tag) and (source == ANY_SOURCE or source in value.sender)


def _size(value: GroupValue) -> int:
    """What a value counts for while it is held."""
    return value.nbytes + VALUE_BYTES

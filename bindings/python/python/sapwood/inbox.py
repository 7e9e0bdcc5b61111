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


class Inbox:
    """What was received and not asked for, and who receives."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._held: deque[GroupValue] = deque()
        self._held_bytes = 0
        self._changed = Condition()
        # One thread at a time takes values from the member, so that those of a sender stay in order.
        self._has_receiver = False
        self.lost = 0

    def take(self, source: int, tag: int, timeout: float) -> GroupValue | None:
        """The oldest value of this sender with this tag; none after the time."""
        until = time.monotonic() + timeout
        with self._changed:
            while (found := self._matching(source, tag)) is None:
                left = max(until - time.monotonic(), 0.0)
                if not self._has_receiver:
                    value = self._receive(left)
                    if value is not None:
                        self._hold(value)
                    elif left == 0.0:
                        return None
                elif left == 0.0:
                    return None
                else:
                    self._changed.wait(left)
            return found

    def restore(self, value: GroupValue) -> None:
        """Puts back what was taken, as the oldest."""
        with self._changed:
            self._held.appendleft(value)
            self._held_bytes += value.nbytes
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
        self._held_bytes += value.nbytes
        while self._held_bytes > HELD_BYTES_MAX and len(self._held) > 1:
            self._held_bytes -= self._held.popleft().nbytes
            self.lost += 1

    def _matching(self, source: int, tag: int) -> GroupValue | None:
        for index, value in enumerate(self._held):
            if (source == ANY_SOURCE or source in value.sender) and (tag in (ANY_TAG, value.tag)):
                del self._held[index]
                self._held_bytes -= value.nbytes
                return value
        return None

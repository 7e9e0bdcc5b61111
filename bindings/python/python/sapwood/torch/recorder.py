"""What one rank records: calls in progress, calls that have returned, its groups, and when it came to each
collective. Plain stores to memory that the leaf reads; see `memory`."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Sequence

from . import handover
from .functions import WAIT
from .memory import (
    ACTIVITIES,
    ACTIVITIES_AT,
    ACTIVITY_WORDS,
    CLASS_NONE,
    COMMUNICATORS,
    COMMUNICATORS_AT,
    EVENTS_HEADER_BYTES,
    EXITED,
    FINALIZED,
    HEADER_BYTES,
    NAMES_BYTES,
    NO_NUMBER,
    RECORDING,
    RINGS,
    RINGS_AT,
    SLOT_WORDS,
    SLOTS,
    SLOTS_END,
    SPACE_WORDS,
    SPACES,
    TRACING,
    make_events,
    make_page,
    make_table,
    ring_records,
)

NO_PEER = NO_NUMBER | NO_NUMBER << 32
"""Peer and tag of a call that has neither."""
ENDED_BY_EXIT = 1
COLLECTIVE = 1
STARTED = 2
COMPLETED = 3
"""Kinds of records: a collective, one that was started, and the call that has waited for it."""
IDENTITIES_RESERVED = 16

# Places of words, or of halves of words, in the three files.
STATE, SLOTS_USED, NAMES_USED, DROPPED = 32 // 4, 180 // 4, 192 // 4, 200 // 8
EVENTS_STATE, SPACES_USED, WITHOUT_RING, WITHOUT_SPACE = 64 // 4, 72 // 4, 88 // 8, 96 // 8
EVENTS_PAUSED = 112 // 8
PENDING, CHANGE, GROUPS, FLAGS = 16 // 4, 20 // 4, 24 // 4, 28 // 4
OBEYED, END, CODE, ENDED_NS, PARTLY = 128 // 4, 132 // 4, 136 // 4, 144 // 8, 152 // 4


class Space:
    """A process group of this rank: `made` counts the collectives that have returned or were started."""

    __slots__ = ("at", "handle", "local", "made", "members", "size_class")

    def __init__(self, at: int, handle: int, members: Sequence[int], local: int) -> None:
        self.at = at
        self.handle = handle
        self.members = members
        self.local = local
        self.made = 0
        self.size_class = (len(members) - 1).bit_length()

    def rank_of(self, rank: int | None) -> int:
        """The rank in the group of a rank of the program; -1 for none."""
        if rank is None:
            return -1
        return self.members.index(rank) if rank in self.members else -1


class Ring:
    """The records of one thread: where its words begin, and how many there were."""

    __slots__ = ("at", "head")

    def __init__(self, at: int) -> None:
        self.at = at
        self.head = 0


class Thread:
    """What one thread does: `at` is the first word of its activity, `inside` whether it is in an observed call."""

    __slots__ = ("at", "inside", "ring")

    def __init__(self, at: int, ring: Ring | None) -> None:
        self.at = at
        self.inside = False
        self.ring = ring


def pair(low: int, high: int) -> int:
    """Two numbers of 32 bits in one word."""
    return low & 0xFFFF_FFFF | (high & 0xFFFF_FFFF) << 32


def identity(*parts: object) -> int:
    """A number of 64 bits that all members of a group compute alike from what they know of it."""
    text = repr(parts).encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return number if number >= IDENTITIES_RESERVED else number + IDENTITIES_RESERVED


class Recorder:
    """The memory of one rank, and the stores to it.

    Each thread that calls has an activity of its own; those beyond the last place are not seen.
    """

    def __init__(self, rank: int, size: int, program: str) -> None:
        """Makes the memory and hands it to the leaf.

        Raises OSError where there is no such memory, ConnectionError where there is no leaf.
        """
        self.rank = rank
        self.size = size
        self._table = make_table(rank, size, program)
        self._page = make_page()
        self._records = ring_records()
        self._events = make_events(rank, size, self._records)
        self._words = self._table.words
        self._page_halves = self._page.halves
        self._event_words = self._events.words
        self._local = threading.local()
        self._lock = threading.Lock()
        self._threads = 0
        self._slots: dict[int, int] = {}
        self._spaces = 0
        self._names_end = 0
        self.is_recording = os.environ.get("SAPWOOD_MPI_WAITS", "") not in ("", "0")
        self._events.halves[EVENTS_STATE] = RECORDING if self.is_recording else 0
        self.thread()
        files = (self._table, self._page, self._events)
        self._descriptors = [file.descriptor for file in files]
        self._descriptors.append(handover.hand_over(rank, size, files))

    def leave(self) -> None:
        """In a forked child, which is not a rank: it lets go of what tells the leaf of the rank's end."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []

    def close(self, code: int) -> None:
        """The rank ends with this exit code: nothing is recorded any more."""
        if not self._descriptors:
            return
        self.is_recording = False
        self._page_halves[CODE] = code & 0xFFFF_FFFF
        self._page.words[ENDED_NS] = time.monotonic_ns()
        self._page_halves[END] = ENDED_BY_EXIT
        self._table.halves[STATE] = FINALIZED if code == 0 else EXITED

    def thread(self) -> Thread:
        """This thread's place, which it gets at its first call."""
        try:
            found: Thread = self._local.thread
        except AttributeError:
            found = self._local.thread = self._new_thread()
        return found

    def _new_thread(self) -> Thread:
        with self._lock:
            place = min(self._threads, ACTIVITIES)
            self._threads += 1
        # The words behind the last activity are those of communicators: a thread without a place has its own.
        at = ACTIVITIES_AT // 8 + place * ACTIVITY_WORDS
        ring = Ring((RINGS_AT + place * (64 + 32 * self._records)) // 8) if place < RINGS else None
        if place < ACTIVITIES:
            self._words[at + 1] = time.monotonic_ns()
            self._words[at + 5] = threading.get_native_id()
        thread = Thread(at, ring)
        # What is inside of nothing observed is not recorded.
        thread.inside = place >= ACTIVITIES
        return thread

    def add_space(self, name: str, members: Sequence[int], *parts: object) -> Space | None:
        """A group of these ranks of the program, this one among them; `parts` tell it from others of the same.

        None where all places are taken.
        """
        if self._spaces >= SPACES:
            self._event_words[WITHOUT_SPACE] += 1
            return None
        number = self._spaces
        at = EVENTS_HEADER_BYTES // 8 + number * SPACE_WORDS
        local = members.index(self.rank)
        space = Space(at, number + 1, members, local)
        words = self._event_words
        words[at + 1] = identity(*parts, tuple(members))
        words[at + 2] = pair(0, len(members))
        words[at + 3] = pair(local, 0)
        words[at] = space.handle
        self._spaces = number + 1
        self._events.halves[SPACES_USED] = number + 1
        self._add_name(number, space, name)
        return space

    def _add_name(self, number: int, space: Space, name: str) -> None:
        text = name.encode() + b"\0"
        if number >= COMMUNICATORS or self._names_end + len(text) > NAMES_BYTES:
            return
        begin = SLOTS_END + self._names_end
        self._table.bytes[begin : begin + len(text)] = text
        at = COMMUNICATORS_AT // 8 + number * 4
        self._words[at + 1] = pair(space.size_class, self._names_end + 1)
        self._words[at] = space.handle
        self._names_end += len(text)
        self._table.halves[NAMES_USED] = self._names_end

    def free_space(self, space: Space) -> None:
        """A group is destroyed; its number of collectives stays."""
        self._event_words[space.at] = 0

    def enter(self, thread: Thread, function: int, space: Space | None, peer_and_tag: int) -> int:
        """A call begins; when, in nanoseconds of the monotonic clock."""
        if self._page_halves[PENDING]:
            self._obey()
        words, at = self._words, thread.at
        begin = time.monotonic_ns()
        words[at + 2] = space.handle if space else 0
        words[at + 3] = peer_and_tag
        words[at + 1] = begin
        words[at] = function
        thread.inside = True
        return begin

    def enter_wait(self, thread: Thread, space: Space, number: int, peer_and_tag: int) -> int:
        """The wait for one request begins: for the collective of this number, or for a message (0)."""
        begin = self.enter(thread, WAIT, space, peer_and_tag)
        words, at = self._words, thread.at
        words[at + 7] = number
        words[at + 6] = begin
        return begin

    def leave_call(self, thread: Thread, function: int, space: Space | None, begin: int) -> int:
        """It has returned; how long it has taken, in nanoseconds."""
        end = time.monotonic_ns()
        words, at = self._words, thread.at
        # The time first: a reader in between takes the call for one that has just begun.
        words[at + 1] = end
        words[at] = 0
        thread.inside = False
        key = function << 8 | (space.size_class if space else CLASS_NONE)
        slot = self._slots.get(key) or self._new_slot(key)
        if slot:
            words[slot + 1] += 1
            words[slot + 2] += end - begin
        return end - begin

    def fail_call(self, thread: Thread, function: int, begin: int) -> None:
        """It has raised an exception, so that it has no number in its group."""
        self.leave_call(thread, function, None, begin)

    def _new_slot(self, key: int) -> int:
        number = len(self._slots)
        if number >= SLOTS:
            self._words[DROPPED] += 1
            return 0
        slot = HEADER_BYTES // 8 + number * SLOT_WORDS
        self._slots[key] = slot
        self._words[slot] = key
        self._table.halves[SLOTS_USED] = number + 1
        return slot

    def count(self, space: Space, function: int, root: int) -> int:
        """A collective has returned or was started: its number in its group."""
        words, at = self._event_words, space.at
        number = space.made + 1
        space.made = number
        words[at + 5] = pair(function, root)
        words[at + 2] = number | len(space.members) << 32
        return number

    def record(self, thread: Thread, times: tuple[int, int], function: int, kind: int, space: Space, number: int,
               root: int) -> None:
        """Writes a record, of a call's begin and span, over the oldest one of the thread's ring."""
        ring = thread.ring
        if ring is None:
            self._event_words[WITHOUT_RING] += 1
            return
        words = self._event_words
        at = ring.at + 8 + 4 * (ring.head & self._records - 1)
        words[at] = times[0]
        words[at + 1] = times[1] << 16 | function
        words[at + 2] = space.handle - 1 | kind << 16 | 1 << 24 | number << 32
        words[at + 3] = root & 0xFFFF_FFFF
        ring.head += 1
        words[ring.at] = ring.head

    def _obey(self) -> None:
        """Takes over what the leaf has written: whether records are wanted. All calls are counted always."""
        halves = self._page_halves
        halves[PENDING] = 0
        change, flags = halves[CHANGE], halves[FLAGS]
        was_recording, self.is_recording = self.is_recording, bool(flags & TRACING)
        if was_recording != self.is_recording:
            self._event_words[EVENTS_PAUSED] = 0 if self.is_recording else time.monotonic_ns()
        self._events.halves[EVENTS_STATE] = RECORDING if self.is_recording else 0
        halves[OBEYED] = change

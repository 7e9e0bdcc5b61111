"""The three memory files that a rank shares with its leaf: table, control page and event file.

`bindings/mpi/shim` draws them, in table.h, control.h and events.h; this writes the same. Numbers are
stored whole, by memory views of their width: a reader in another process sees each one either before or
after it was stored. The order of the stores is that of the program on processors with ordered stores
(x86-64); on others a reader may take a call for one that is about to begin or has just ended.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import time

SLOTS = 256
SLOT_WORDS = 8
NAMES_BYTES = 16384
ACTIVITIES = 16
ACTIVITY_WORDS = 8
COMMUNICATORS = 256
SPACES = 4096
SPACE_WORDS = 8
RINGS = 4
RING_BYTES = 1 << 20
RING_BYTES_MIN = 4096
RING_BYTES_MAX = 2 << 20
RECORD_BYTES = 32
LABEL_BYTES = 64
PAGE_BYTES = 4096
CLASS_NONE = 255

NO_NUMBER = 0x8000_0000
"""In the place of a peer or a tag of a call that has none: the smallest number of 32 bits."""

RUNNING = 1
FINALIZED = 2
EXITED = 3

RECORDING = 1
"""A bit of the event file's state: records are written."""
TRACING = 2
"""A bit of the control page's flags: records are wanted."""
ALL_COUNTED = 0xF7F
"""Of the control page: all groups of functions, their time, bytes and activities."""
SELECTED = 1

FLAGS_OF_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
SEAL_FUTURE_WRITE = 0x10
"""From linux/fcntl.h; the module `fcntl` has it from Python 3.14 on."""

FD_MIN = 512
"""Programs that close or reuse small descriptor numbers must not hit ours."""

HEADER_BYTES = 512
SLOTS_END = HEADER_BYTES + SLOTS * SLOT_WORDS * 8
ACTIVITIES_AT = SLOTS_END + NAMES_BYTES
COMMUNICATORS_AT = ACTIVITIES_AT + ACTIVITIES * ACTIVITY_WORDS * 8
TABLE_BYTES = COMMUNICATORS_AT + COMMUNICATORS * 32

EVENTS_HEADER_BYTES = 256
RINGS_AT = EVENTS_HEADER_BYTES + SPACES * SPACE_WORDS * 8


class SharedMemory:
    """A memory file of sealed size: `words`, `halves` and `bytes` are views of it, `descriptor` is open."""

    def __init__(self, name: str, size: int, *, is_own: bool) -> None:
        """`is_own` seals it, so that processes that get the descriptor can only read.

        Raises OSError where the system has no such files.
        """
        low = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(low, size)
            self._memory = mmap.mmap(low, size)
            self.bytes = memoryview(self._memory)
            self.words = self.bytes.cast("Q")
            self.halves = self.bytes.cast("I")
            seal(low, is_own=is_own)
            self.descriptor = high_duplicate(low)
        finally:
            os.close(low)


def high_duplicate(descriptor: int) -> int:
    """A duplicate above those that programs use by number; or any, where the limit is lower."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FD_MIN)
    except OSError:
        return os.dup(descriptor)


def seal(descriptor: int, *, is_own: bool) -> None:
    """Fixes the size of a file; systems before Linux 5.1 know no seal against later writers."""
    if is_own:
        try:
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, FLAGS_OF_SEALS | SEAL_FUTURE_WRITE)
            return
        except OSError:
            pass
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, FLAGS_OF_SEALS)


def label(text: str) -> bytes:
    """A label of 64 bytes, padded with NUL."""
    return text.encode("utf-8", "replace")[: LABEL_BYTES - 1].ljust(LABEL_BYTES, b"\0")


def make_table(rank: int, size: int, program: str) -> SharedMemory:
    """The table of a rank that counts from now on; the program's name is that of its file."""
    table = SharedMemory("sapwood-profile", TABLE_BYTES, is_own=True)
    now = time.monotonic_ns()
    head = struct.pack("<8sIIIIIIII", b"SWPROFIL", 5, HEADER_BYTES, rank, size, os.getpid(), 1, RUNNING, 0)
    head += struct.pack("<Q", now) + label(socket.gethostname()) + label(program)
    head += struct.pack("<IIIIII", SLOTS, 0, SLOTS_END, NAMES_BYTES, 0, ACTIVITIES_AT)
    head += struct.pack("<QQIIQQQQ", 0, TABLE_BYTES, ACTIVITIES, COMMUNICATORS, now, now, 1 << 32, 1)
    head += struct.pack("<IIIIII", TABLE_BYTES, 0, 0, TABLE_BYTES, 0, 0)
    table.bytes[: len(head)] = head
    table.words[296 // 8] = time.process_time_ns()
    return table


def make_page() -> SharedMemory:
    """The control page, which the leaf writes too."""
    page = SharedMemory("sapwood-control", PAGE_BYTES, is_own=False)
    page.bytes[:32] = struct.pack("<8sIIIIII", b"SWCONTRL", 1, PAGE_BYTES, 0, 0, ALL_COUNTED, SELECTED)
    return page


def ring_records() -> int:
    """Records of each ring, a power of two: as many as the bytes hold that the environment gives to it."""
    text = os.environ.get("SAPWOOD_MPI_RING_BYTES", "")
    given = int(text) if text.isdecimal() else RING_BYTES
    if not RING_BYTES_MIN <= given <= RING_BYTES_MAX:
        given = RING_BYTES
    return 1 << (given // RECORD_BYTES).bit_length() - 1


def make_events(rank: int, size: int, records: int) -> SharedMemory:
    """The event file, with rings of this number of records."""
    length = RINGS_AT + RINGS * (64 + records * RECORD_BYTES)
    events = SharedMemory("sapwood-events", length, is_own=True)
    now = time.monotonic_ns()
    head = struct.pack("<8sIIIIII", b"SWEVENTS", 1, EVENTS_HEADER_BYTES, rank, size, os.getpid(), 0)
    head += struct.pack("<QQQQ", length, now, now, 1 << 32)
    head += struct.pack("<IIIIII", 0, SPACES, 0, RINGS, records, RINGS_AT)
    events.bytes[: len(head)] = head
    return events

"""Reads a profile table as table.h lays it out."""

import os
import struct

HEADER = struct.Struct("<8sIIIIIIIIQ64s64sIIIIIIQQIIQQQQIIIIIIQIIQ7Q")
UNTRACKED = struct.Struct("<Q")
SNAPSHOTS = struct.Struct("<IIQQ")
THREADS = struct.Struct("<QQQQI")
SLOT = struct.Struct("<QQQQI4xQ16x")
TALLY = struct.Struct("<QQQQQI20x")
HISTOGRAM = struct.Struct("<32Q")
NAMED = struct.Struct("<QII16x")
PENDING = struct.Struct("<504xQ")
SITE, PEER, COMMUNICATOR = 1, 2, 3
NONE = 255
# Counting begins when they return.
INITIALISES = ("MPI_Init", "MPI_Init_thread")
USAGE = ("cpu_user_ns", "cpu_system_ns", "resident_bytes_max", "minor_faults", "major_faults",
         "voluntary_switches", "involuntary_switches")


def table_rows():
    path = os.path.join(os.path.dirname(__file__), "..", "functions.table")
    with open(path, encoding="utf-8") as table:
        return [line.split() for line in table if line.strip() and not line.startswith("#")]


def function_names():
    """Names by id, from the one table."""
    return {int(row[0]): row[1] for row in table_rows()}


def function_groups():
    """Function classes by name, from the one table."""
    return {row[1]: row[2] for row in table_rows()}


class Profile:
    """One rank's table: its header's fields, `calls` and `regions`.

    `calls` maps (function, size class) to (count, bytes), `regions` a name to its
    count; `times` has the nanoseconds of both. `received` maps the events that have received
    messages to their bytes, `sizes` those that move bytes to their transfers by size class, `usage` names to what getrusage said at the end, `tallies`
    (kind, function or None, size class, subject, name) to (count, nanoseconds, bytes). `mpi_ns` is the time in
    which the rank was in MPI, with all its threads that have called MPI. `told` are the names by which it tells
    communicators, windows and files, `nameless` says how many windows and files have a place there without a name, and
    `pending` for how many threads the receives are listed for which a call has waited.
    """

    def __init__(self, data):
        self.data = data
        (magic, version, header_bytes, self.rank, self.size, self.pid, self.abi, self.state, self.flags,
         self.started_ns, host, program, capacity, used, names_at, names_capacity, names_used, activities_at,
         self.dropped, table_bytes, activities, communicators, clock_ticks, clock_ns, clock_scale,
         _, histograms_at, histograms, histograms_used, tallies_at, tallies, self.extras, self.tallies_dropped,
         self.taken_functions, self.is_spawned, self.started_cpu_ns, *usage) = HEADER.unpack_from(data)
        assert (magic, version, header_bytes) == (b"SWPROFIL", 5, 512)
        assert activities_at == names_at + names_capacity == header_bytes + 64 * capacity + names_capacity
        assert histograms_at == activities_at + 64 * activities + 32 * communicators
        pending_at, = struct.unpack_from("<I", data, 460)
        # Tables of other programs than the shim have no lists.
        lists = range(activities if pending_at else 0)
        assert pending_at in (0, histograms_at + 256 * histograms) and histograms_used <= histograms
        assert tallies_at == histograms_at + 256 * histograms + 512 * len(lists)
        self.untracked, = UNTRACKED.unpack_from(data, 368)
        snapshots_at, snapshots, self.marks, self.marks_left_out = SNAPSHOTS.unpack_from(data, 384)
        self.together_ns, _, _, self.threads_most, self.is_together = THREADS.unpack_from(data, 424)
        assert snapshots_at == tallies_at + 64 * tallies
        assert table_bytes == len(data) == snapshots_at + snapshots * (64 + 24 * capacity)
        self.usage = dict(zip(USAGE, usage))
        assert used <= capacity and names_used <= names_capacity
        since = [struct.unpack_from("<Q", data, activities_at + 64 * i + 8)[0] for i in range(activities)]
        # When it entered or left its last call.
        self.ended_ns = max(clock_ns + (max(0, ticks - clock_ticks) * clock_scale >> 32) for ticks in since)
        self.host, self.program = (text.rstrip(b"\0").decode() for text in (host, program))
        self.calls, self.regions, self.times, self.sizes, self.received = {}, {}, {}, {}, {}
        names = function_names()
        for slot in range(used):
            key, count, time_ns, moved, row, received = SLOT.unpack_from(data, header_bytes + 64 * slot)
            if key >> 63:
                start = names_at + (key & ~(1 << 63))
                name = data[start : data.index(0, start)].decode()
                self.regions[name] = count
            else:
                name = (names[key >> 8], key & 0xFF)
                self.calls[name] = (count, moved)
                if received:
                    self.received[name] = received
                if row:
                    self.sizes[name] = HISTOGRAM.unpack_from(data, histograms_at + 256 * (row - 1))
            self.times[name] = time_ns
        calls = (time for name, time in self.times.items() if isinstance(name, tuple) and name[0] not in INITIALISES)
        self.mpi_ns = self.together_ns if self.is_together else sum(calls)
        named_at = activities_at + 64 * activities
        named = [NAMED.unpack_from(data, named_at + 32 * place) for place in range(communicators)]
        starts = [names_at + name - 1 for handle, _, name in named if handle and name]
        self.nameless = sum(handle != 0 and size == NONE and name == 0 for handle, size, name in named)
        self.pending = sum(PENDING.unpack_from(data, pending_at + 512 * i)[0] != 0 for i in lists)
        self.told = {data[start : data.index(0, start)].decode(errors="backslashreplace") for start in starts}
        self.tallies = {}
        for place in range(tallies):
            key, subject, count, time_ns, moved, name = TALLY.unpack_from(data, tallies_at + 64 * place)
            if key:
                start = names_at + name - 1
                text = data[start : data.index(0, start)].decode(errors="backslashreplace") if name else ""
                function = names.get(key >> 8 & 0xFFFFFFFF)
                self.tallies[(key >> 56, function, key & 0xFF, subject, text)] = (count, time_ns, moved)


def size_class(size):
    """Size class of a communicator, as in table.h."""
    return (size - 1).bit_length()

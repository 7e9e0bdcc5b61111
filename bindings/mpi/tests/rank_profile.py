"""Reads a profile table as table.h lays it out."""

import os
import struct

HEADER = struct.Struct("<8sIIIIIIIIQ64s64sIIIIIIQQIIQQQQ")
SLOT = struct.Struct("<QQQQ32x")
NONE = 255


def function_names():
    """Names by id, from the one table."""
    path = os.path.join(os.path.dirname(__file__), "..", "functions.table")
    with open(path, encoding="utf-8") as table:
        rows = [line.split() for line in table if line.strip() and not line.startswith("#")]
    return {int(row[0]): row[1] for row in rows}


class Profile:
    """One rank's table: its header's fields, `calls` and `regions`.

    `calls` maps (function, size class) to (count, bytes), `regions` a name to its
    count; `times` has the nanoseconds of both.
    """

    def __init__(self, data):
        self.data = data
        (magic, version, header_bytes, self.rank, self.size, self.pid, self.abi, self.state, self.flags,
         self.started_ns, host, program, capacity, used, names_at, names_capacity, names_used, activities_at,
         self.dropped, table_bytes, activities, communicators, clock_ticks, clock_ns, clock_scale,
         _) = HEADER.unpack_from(data)
        assert (magic, version, header_bytes) == (b"SWPROFIL", 2, 256)
        assert activities_at == names_at + names_capacity == header_bytes + 64 * capacity + names_capacity
        assert table_bytes == len(data) == activities_at + 64 * activities + 32 * communicators
        assert used <= capacity and names_used <= names_capacity
        since = [struct.unpack_from("<Q", data, activities_at + 64 * i + 8)[0] for i in range(activities)]
        # When it entered or left its last call.
        self.ended_ns = max(clock_ns + (max(0, ticks - clock_ticks) * clock_scale >> 32) for ticks in since)
        self.host, self.program = (text.rstrip(b"\0").decode() for text in (host, program))
        self.calls, self.regions, self.times = {}, {}, {}
        names = function_names()
        for slot in range(used):
            key, count, time_ns, moved = SLOT.unpack_from(data, header_bytes + 64 * slot)
            if key >> 63:
                start = names_at + (key & ~(1 << 63))
                name = data[start : data.index(0, start)].decode()
                self.regions[name] = count
            else:
                name = (names[key >> 8], key & 0xFF)
                self.calls[name] = (count, moved)
            self.times[name] = time_ns


def size_class(size):
    """Size class of a communicator, as in table.h."""
    return (size - 1).bit_length()

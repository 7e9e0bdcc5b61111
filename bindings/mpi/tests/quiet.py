"""A call on a communicator that the shim knows costs no system call, no allocation and no lock in the shim.

One process makes collectives, sends, receives and their completions on a communicator of its own, without the shim,
with it, and with it while it records. What the process asks of the system, of the heap and of mutexes in that time
is counted, and the shim must add nothing. That the counting sees something is shown by calls that are allowed to.

Needs strace, and the environment that watched.py names.
"""

import collections
import os
import re
import subprocess
import tempfile
import unittest

import turns
import watched
from rank_events import EventFile
from watched import OneMpi, library_folder, shim_of, test_program

CALLS = 10_000
# Of each: an all-reduction, two sends, and two receives, one of which is completed by a call of its own.
RECORDED = 5
MARK = "getppid"


class Count:
    """What a run asks for between its marks: `system` by the names of the calls, `allocations` and `locks`."""

    def __init__(self, abi, *words, shim=False, waits=False):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-quiet-") as folder:
            trace = os.path.join(folder, "trace")
            told = {"SAPWOOD_MPI_DUMP_DIR": folder, "SAPWOOD_MPI_WAITS": str(int(waits))}
            if shim:
                told["LD_PRELOAD"] = shim_of(abi)
            command = ["strace", "-f", "-qq", "-o", trace]
            for name, value in told.items():
                command += ["-E", f"{name}={value}"]
            command += [test_program(abi, "quiet"), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX, check=True)
            self.allocations, self.locks = map(int, done.stdout.split())
            with open(trace, encoding="utf-8") as file:
                self.system = self.counted(file.read().splitlines())
            self.events = self.read_events(os.path.join(folder, "rank-0.events"))

    def counted(self, lines):
        """The thread that makes the marks is looked at alone: what the MPI's other threads do is their own."""
        found = [re.match(r"(\d+) +(\w+)\(", line) for line in lines]
        calls = [match.groups() for match in found if match]
        marks = [at for at, (_, name) in enumerate(calls) if name == MARK]
        assert len(marks) == 2 and calls[marks[0]][0] == calls[marks[1]][0], marks
        own = calls[marks[0]][0]
        return collections.Counter(name for thread, name in calls[marks[0] + 1:marks[1]] if thread == own)

    def read_events(self, path):
        if not os.path.exists(path):
            return 0
        with open(path, "rb") as file:
            events = EventFile(file.read())
        return len(events.events) + events.dropped


@turns.alone("a lock for which a thread waits is a call of the system")
class Quiet(OneMpi):
    """The comparison, for one MPI."""

    def test_calls_on_a_known_communicator_ask_nothing_of_the_system_the_heap_or_a_lock(self):
        alone = Count(self.abi, str(CALLS))
        for waits in (False, True):
            with_shim = Count(self.abi, str(CALLS), shim=True, waits=waits)
            with self.subTest(waits=waits):
                self.assertEqual(with_shim.system - alone.system, collections.Counter())
                self.assertEqual((with_shim.allocations, with_shim.locks), (alone.allocations, alone.locks))
                # They were recorded indeed.
                self.assertEqual(with_shim.events > CALLS * RECORDED, waits)

    def test_calls_that_make_a_communicator_are_counted(self):
        with_shim = Count(self.abi, "100", "made", shim=True, waits=True)
        self.assertGreater(with_shim.allocations, 100)
        self.assertGreater(with_shim.locks, 100)


class OpenMpi(Quiet, unittest.TestCase):
    abi = "openmpi"


class Mpich(Quiet, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    library_folder()
    unittest.main()

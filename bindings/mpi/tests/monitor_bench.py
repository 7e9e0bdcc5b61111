"""Runs `sapwood bench monitor` on MPI programs, as shortly as it can, and checks that all figures are there.

Needs the environment that watched.py names, and SAPWOOD_BENCH, the program of the benchmarks with `sapwood` and
`sapwood-node` beside it; `make test-mpi` sets both.
"""

import json
import os
import subprocess
import tempfile
import unittest

import turns
import watched
from marks import MARK, end_what_is_left, new_mark
from watched import LAUNCHERS, has_mpi, library_folder


class MonitorBench(unittest.TestCase):
    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("the launcher has no place for two ranks here")

    def measured(self, *words):
        """What the benchmark prints; it leaves no process and no file."""
        mark = new_mark()
        with tempfile.TemporaryDirectory(prefix="sapwood-monitor-bench-") as folder:
            settings = {**os.environ, MARK: mark, "TMPDIR": folder, "SAPWOOD_LIB_DIR": library_folder()}
            command = [os.path.abspath(os.environ["SAPWOOD_BENCH"]), "monitor", "--json", "--mpicc", "mpicc.openmpi",
                       "--mpirun", LAUNCHERS["openmpi"][0], *words]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=watched.RUN_SECONDS_MAX)
            left = end_what_is_left(mark)
            files = [name for name in os.listdir(folder) if name.startswith("sapwood-bench-")]
        self.assertEqual((done.returncode, left, files), (0, [], []), done.stderr)
        return json.loads(done.stdout)

    def test_small_reductions_are_timed_with_the_monitor_and_without(self):
        short = ("--perturbation-pairs", "2", "--perturbation-seconds", "1")
        found = self.measured("--only", "perturbation", "--perturbation-programs", "allreduce", *short)["perturbation"]
        [row] = found["per_second"]
        self.assertEqual((row["program"], row["timed"], row["pairs"]), ("allreduce", "median call", 2))
        self.assertGreater(row["ratio"], 0)
        self.assertLessEqual(row["low"], row["high"])
        self.assertEqual(found["per_iteration"], [], "each of its calls would be an iteration")

    def test_a_call_is_timed_with_the_shim_and_without(self):
        found = self.measured("--only", "shim", "--shim-pairs", "1")["shim"]
        dearer = max(found[name]["ns"] for name in ("MPI_Comm_rank", "MPI_Allreduce"))
        self.assertEqual((found["ns_per_call"], found["compiler"]), (max(dearer, 0), "mpicc.openmpi"))


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

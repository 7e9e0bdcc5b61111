"""Runs `sapwood bench monitor` on MPI programs, as shortly as it can, and checks that all figures are there.

Needs the environment that benchmarks.py names.
"""

import json
import os
import unittest

import turns
from benchmarks import bench
from watched import has_mpi


class MonitorBench(unittest.TestCase):
    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("the launcher has no place for two ranks here")

    def measured(self, *words):
        """What the benchmark prints."""
        done = bench("monitor", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
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

"""Runs `sapwood bench trace --only culprit` with single trials of real programs, and checks what it tells of them.

Needs the environment that watched.py names, and SAPWOOD_BENCH, the program of the benchmarks with `sapwood` and
`sapwood-node` beside it; `make test-mpi` sets both.
"""

import json
import os
import subprocess
import tempfile
import unittest

import watched
from marks import MARK, end_what_is_left, new_mark
from watched import LAUNCHERS, SYSTEM_PYTHON, has_mpi, library_folder

RANKS = 4


class CulpritTrials(unittest.TestCase):
    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")

    def trials(self, *words):
        """The answer of the benchmark, which leaves no process and no file."""
        mark = new_mark()
        with tempfile.TemporaryDirectory(prefix="sapwood-culprit-") as folder:
            settings = {**os.environ, MARK: mark, "TMPDIR": folder, "SAPWOOD_LIB_DIR": library_folder()}
            command = [os.path.abspath(os.environ["SAPWOOD_BENCH"]), "trace", "--only", "culprit", "--ranks", str(RANKS),
                       "--trials", "1", "--json", "--mpirun", LAUNCHERS["openmpi"][0], "--mpicc", "mpicc.openmpi", "--python", SYSTEM_PYTHON, *words]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=3 * watched.RUN_SECONDS_MAX)
            left = end_what_is_left(mark)
            files = [name for name in os.listdir(folder) if name.startswith("sapwood-bench-")]
        self.assertEqual((done.returncode, left, files), (0, [], []), done.stderr)
        found = json.loads(done.stdout)["culprit"]
        if not found["rows"]:
            self.assertTrue(found["left_out"], found)
            self.skipTest("; ".join(one["why"] for one in found["left_out"]))
        return found

    def test_a_rank_that_is_stopped_is_named(self):
        found = self.trials("--programs", "solver", "--kinds", "stopped", "--clean", "0")
        [row] = found["rows"]
        self.assertEqual((row["program"], row["kind"], row["trials"], row["right"]), ("solver", "stopped", 1, 1), found)
        self.assertEqual((found["trials"], found["right"], found["clean_runs"]), (1, 1, 0), found)
        self.assertIsNotNone(found["worst_s"])

    def test_a_fault_in_front_of_an_unmodified_program_is_found(self):
        found = self.trials("--programs", "lammps", "--kinds", "endless_loop,other_root", "--clean", "0")
        [row] = found["rows"]
        self.assertEqual((row["kind"], row["right"]), ("endless_loop", 1), found)
        [left_out] = found["left_out"]
        self.assertEqual((left_out["program"], left_out["kind"]), ("lammps", "other_root"), found)


if __name__ == "__main__":
    unittest.main()

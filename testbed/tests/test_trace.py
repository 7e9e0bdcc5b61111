"""Traces of MPI programs on several hosts: which ranks are late, what they did last, and figures of chosen calls; and
the statistics, histograms and classes of all their calls.

The tests of one host (bindings/mpi/tests) run on node00, and the ranks of their programs on the next four hosts,
one after another.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from stories import HERE, PROGRAM, STORY_SECONDS_MAX, Story, TESTBED, name, testbed
from test_mpi import BINDINGS, ENVIRONMENT, SHIMS

HOSTS_USED = [name(index) for index in range(1, 5)]
# Two slots each; the first ranks are on a host each. Open MPI takes no loopback interface for a way between hosts.
MPIRUN = ("mpirun.openmpi", "-H", ",".join(f"{host}:2" for host in HOSTS_USED), "--map-by", "node",
          "--mca", "btl_tcp_if_include", "eth0", "-x", "SAPWOOD_MPI_DUMP_DIR")

# What these tests run.
PROGRAMS = ["paced", "roles", "solver", "waits", *(f"culprits/{case}" for case in ("comm_cycle", "early_break", "late_checkpoint", "slow_rank"))]


class Traces(Story):
    """Programs of four and more ranks on four hosts."""

    @classmethod
    def setUpClass(cls):
        requirements = os.path.join(os.path.dirname(TESTBED), "requirements")
        subprocess.run([requirements, "demo"], stdout=subprocess.DEVNULL, check=True)
        files = [os.path.join(SHIMS, "tests", "openmpi", program) for program in PROGRAMS]
        subprocess.run(["make", "-s", "-C", BINDINGS, f"OUT={SHIMS}", *files], check=True)
        super().setUpClass()
        # A folder that all hosts see.
        cls.folder = tempfile.mkdtemp(prefix="sapwood-trace-", dir="/var/tmp")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def passes(self, program, *tests):
        """Runs these tests of a program of bindings/mpi/tests on node00."""
        selected = [word for test in tests for word in ("-k", f"*.{test}")]
        settings = [*ENVIRONMENT, f"SAPWOOD={PROGRAM}", f"TMPDIR={self.folder}", f"MPIRUN_OPENMPI={' '.join(MPIRUN)}"]
        line = [TESTBED, "exec", name(0), "env", *settings, sys.executable, "-B",
                os.path.join(BINDINGS, "tests", program), "OpenMpi", *selected]
        done = subprocess.run(line, capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Each of them is one test.
        self.assertIn(f"Ran {len(tests)} test", done.stderr)
        self.assertNotIn("skipped", done.stderr)

    def test_the_rank_for_which_others_wait_is_named(self):
        self.passes("why.py", "test_early_break", "test_comm_cycle", "test_slow_rank")

    def test_a_job_that_is_monitored_is_asked(self):
        self.passes("why.py", "test_a_job_that_is_monitored_already_is_asked")

    def test_the_last_calls_of_a_program_that_is_stuck_are_frozen(self):
        self.passes("freeze.py", "test_a_program_that_is_stuck_is_frozen_then")

    def test_the_last_calls_of_a_program_that_runs_are_frozen(self):
        self.passes("freeze.py", "test_a_program_that_waits_is_frozen_on_request", "test_a_rank_that_comes_late_is_a_trigger")

    def test_waits_are_right_within_the_error_of_the_clocks(self):
        self.passes("waits.py", "test_collectives", "test_communicators",
                    "test_an_exchange_waits_for_the_rank_to_which_it_sends")

    def test_figures_of_calls_are_those_that_each_rank_wrote(self):
        self.passes("scopes.py", "test_figures_of_collectives_and_messages")

    def test_statistics_of_all_calls_are_those_of_what_each_rank_wrote(self):
        self.passes("truth.py", "test_c_solver")

    def test_histograms_classes_and_outliers_are_those_of_what_each_rank_wrote(self):
        self.passes("filters.py", "test_roles")

    def test_figures_of_a_job_that_is_monitored(self):
        self.passes("scopes.py", "test_a_program_that_is_watched_already_is_asked")

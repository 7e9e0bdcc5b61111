"""Runs MPI programs under the bypass libraries and compares them with the MPI library alone.

    bypass.py [unittest arguments]

Needs what `make OUT=FOLDER bypass` builds, in the folder named by SAPWOOD_BYPASS_TEST_OUT, and
python3-jsonschema.
SAPWOOD_BYPASS_KILLS is the number of runs in which a rank is killed (50). A hang is reported
as one. No run may leave a process behind, and so no shared memory, which has no name.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests"), os.path.join(HERE, "..", "..", "..", "..", "testbed")]
sys.dont_write_bytecode = True

import prerequisites
import run as launching
import surroundings
import turns

surroundings.keep_only("SAPWOOD_BYPASS_TEST_OUT", "SAPWOOD_BYPASS_KILLS", **surroundings.MPI)

OUT = os.environ.get("SAPWOOD_BYPASS_TEST_OUT", "")
ROOT = os.path.join(HERE, "..", "..", "..", "..")
MELT = os.path.join(ROOT, "demo", "in.melt")
ALL = "reduce,allreduce,barrier"
FEWER_RANKS = {"openmpi": (1, 2, 3, 5, 8), "mpich": (1, 2, 3)}
CASES = {"openmpi": "2000", "mpich": "200"}
# MPICH spins, so that every call of the library itself takes milliseconds.
COUNTS_EACH = {"openmpi": "4", "mpich": "1"}
ENVIRONMENT = {"SAPWOOD_BYPASS_AFTER": "0", "SAPWOOD_BYPASS_RANKS_MIN": "2"}


def library(abi):
    return os.path.join(OUT, f"libsapwood-bypass-{abi}.so")


def assert_fits(name, path):
    """A file of JSON is as the schema of docs/schema says, which allows no member that it does not describe."""
    with open(os.path.join(ROOT, "docs", "schema", f"{name}.json"), encoding="utf-8") as file:
        validator = jsonschema.Draft202012Validator(json.load(file))
    with open(path, encoding="utf-8") as file:
        validator.validate(json.load(file))


class EachAbi:
    """The tests that both ABIs share; subclasses name theirs."""

    abi = None

    def setUp(self):
        prerequisites.require_mpi(self.abi, launching.LAUNCHERS[self.abi][0], library(self.abi))
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="sapwood-bypass-"))

    def program(self, name):
        return prerequisites.built(OUT, f"{self.abi}/bypass/{name}")

    def start(self, ranks, command, environment=None, options=(), preload=True):
        """Runs a job to its end: exit code, output, errors, and its counters if it wrote them."""
        told = {**ENVIRONMENT, "SAPWOOD_BYPASS_JSON": os.path.join(self.folder, "job.json"), **(environment or {})}
        if preload:
            told["LD_PRELOAD"] = library(self.abi)
        launcher = launching.LAUNCHERS[self.abi]
        code, output, errors = launching.execute([launcher[0], *options, *launcher[1:], str(ranks), *command], told)
        counters = None
        if os.path.exists(told["SAPWOOD_BYPASS_JSON"]):
            with open(told["SAPWOOD_BYPASS_JSON"], encoding="utf-8") as file:
                counters = json.load(file)
            assert_fits("bypass-job-1", told["SAPWOOD_BYPASS_JSON"])
            os.remove(told["SAPWOOD_BYPASS_JSON"])
        return code, output, errors, counters

    def scenario(self, name, ranks=None, environment=None):
        ranks = ranks or self.ranks
        code, output, errors, counters = self.start(ranks, [self.program("semantics"), name], environment)
        self.assertEqual((code, output, errors), (0, f"{name} ok\n", ""))
        return counters

    @staticmethod
    def taken(counters):
        return sum(sum(rank["taken"].values()) for rank in counters["by_rank"])

    @staticmethod
    def left(counters, cause):
        return sum(rank["left_to_mpi"].get(cause, 0) for rank in counters["by_rank"])

    def verify(self, ranks, environment=None):
        command = [self.program("verify"), str(ranks), CASES[self.abi], COUNTS_EACH[self.abi]]
        code, output, errors, counters = self.start(ranks, command, environment)
        self.assertEqual((code, output, errors), (0, f"verified {CASES[self.abi]} cases\n", ""))
        return counters

    def test_every_operation_and_type_agrees_with_mpi(self):
        for ranks in FEWER_RANKS[self.abi]:
            with self.subTest(ranks=ranks):
                counters = self.verify(ranks, {"SAPWOOD_BYPASS": ALL})
                self.assertEqual(counters["ranks"], ranks)
                self.assertEqual(self.taken(counters) > 0, ranks > 1)

    def test_small_chunks_and_a_short_ring_agree_with_mpi(self):
        self.verify(3, {"SAPWOOD_BYPASS": ALL, "SAPWOOD_BYPASS_CHUNK_BYTES": "1024", "SAPWOOD_BYPASS_RING": "2",
                        "SAPWOOD_BYPASS_BYTES_MAX": "1000000"})

    def test_ranks_run_ahead_of_a_slow_root(self):
        counters = self.scenario("ahead")
        self.assertGreater(sum(rank["held"] for rank in counters["by_rank"]), 0)

    @turns.alone(turns.LATENESS)
    def test_the_last_to_come_is_counted_at_each_edge(self):
        code, _, errors, counters = self.start(4, [self.program("semantics"), "late"], {"SAPWOOD_BYPASS_REPORT": "1"})
        self.assertEqual(code, 0, errors)
        parents = {one["rank"]: one for one in counters["by_parent"]}
        edges = {(parent, child["rank"]): child for parent, one in parents.items() for child in one["children"]}
        # The binomial trees of 0 to 3, and of 3 to 0.
        self.assertEqual({edge: one["instances"] for edge, one in edges.items()},
                         {(0, 1): 50, (0, 2): 50, (2, 3): 50, (3, 2): 10, (3, 1): 10, (1, 0): 10})
        for one in parents.values():
            self.assertEqual(one["own_last"] + sum(child["last"] for child in one["children"]), one["instances"], one)
        for one in edges.values():
            self.assertTrue(one["last"] <= one["late"] <= one["instances"], one)
        # Rank 3 sleeps 5 ms each time, and the others run ahead of it. Where it is the root no child is later.
        self.assertGreaterEqual(edges[(2, 3)]["last"], 25, parents)
        self.assertGreaterEqual(edges[(2, 3)]["late_us"], 25 * 1000, parents)
        self.assertGreaterEqual(parents[3]["own_last"], 1, parents)
        self.assertRegex(errors, "bypass: what rank 3 sends to rank 2 was complete after that one had called in "
                                 r"\d+ of 50 reductions, by [\d.]+ ms on the mean, and came last there in \d+")

    def test_a_waiting_root_makes_progress_for_others(self):
        self.scenario("progress")

    def test_256_communicators_at_once(self):
        counters = self.scenario("communicators")
        self.assertEqual([rank["communicators"] for rank in counters["by_rank"]], [1 + 2 * 256] * self.ranks)

    def test_threads_reduce_on_their_own_communicators(self):
        self.scenario("threads")

    def test_a_rank_that_never_calls_holds_nobody_but_a_root_and_is_named(self):
        code, _, errors, _ = self.start(3, [self.program("semantics"), "away"], {"SAPWOOD_BYPASS_REPORT": "1"})
        self.assertEqual(code, 0)
        self.assertIn("bypass: rank 1 did not take part in the last reductions of MPI_COMM_WORLD", errors)

    def test_forked_children_are_not_ranks(self):
        self.scenario("forks")

    def test_what_is_not_taken_goes_to_the_library_by_cause(self):
        counters = self.scenario("others", ranks=4)
        self.assertEqual(self.left(counters, "operation"), 80)
        self.assertEqual(self.left(counters, "inter_communicator"), 4)
        self.assertEqual(self.taken(counters), 80)

    def test_young_communicators_stay_with_the_library(self):
        counters = self.scenario("communicators", environment={"SAPWOOD_BYPASS_AFTER": "2"})
        self.assertEqual(self.left(counters, "first_calls"), 2 * 256 * 2 * self.ranks)

    def test_few_ranks_stay_with_the_library(self):
        counters = self.scenario("forks", ranks=2, environment={"SAPWOOD_BYPASS_RANKS_MIN": "3"})
        # Without shared memory rank 0 tells only of itself.
        self.assertEqual((self.taken(counters), self.left(counters, "few_ranks")), (0, 10))

    def test_fortran(self):
        for kind in ("mpif", "usempi", "f08"):
            with self.subTest(kind=kind):
                code, output, errors, counters = self.start(self.ranks, [self.program(f"reduce_{kind}")])
                self.assertEqual((code, output.strip(), errors), (0, "fortran ok", ""))
                self.assertEqual(self.taken(counters), 50 * 4 * self.ranks)

    def one_kill(self, seed):
        """The launcher takes a second to end a job, so that several run at a time."""
        begun = os.path.join(self.folder, f"{seed}.begun")
        told = {"SEED": str(seed), "BEGUN": begun, "SAPWOOD_BYPASS_JSON": os.path.join(self.folder, f"{seed}.json")}
        code, output, _, _ = self.start(self.kill_ranks, [self.program("semantics"), "killed"], told)
        # A job that never came to its reductions has failed, too.
        return seed, code, output, os.path.exists(begun)

    def test_a_killed_rank_ends_the_job(self):
        with concurrent.futures.ThreadPoolExecutor(self.kills_at_once) as pool:
            for seed, code, output, has_begun in pool.map(self.one_kill, range(self.kills)):
                self.assertTrue(has_begun, f"seed {seed}: {output}")
                self.assertNotEqual(code, 0, f"seed {seed}")
                self.assertNotIn("wrong", output, f"seed {seed}")

    def test_not_preloaded_at_some_ranks_falls_back_at_all(self):
        command = ["sh", "-c", 'test "${PMI_RANK:-$PMIX_RANK}" = 1 || export LD_PRELOAD=' + library(self.abi) +
                   "; exec " + self.program("semantics") + " ahead"]
        code, output, errors, counters = self.start(self.ranks, command, preload=False)
        self.assertEqual((code, output, errors), (0, "ahead ok\n", ""))
        self.assertFalse(counters["whole"])
        self.assertEqual(self.taken(counters), 0)
        self.assertGreater(self.left(counters, "not_all_here"), 0)

    def test_other_settings_at_some_ranks_fall_back_at_all(self):
        command = ["sh", "-c", 'test "${PMI_RANK:-$PMIX_RANK}" = 1 || export SAPWOOD_BYPASS_RING=8; exec ' +
                   self.program("semantics") + " ahead"]
        code, output, errors, counters = self.start(self.ranks, command)
        self.assertEqual((code, output, errors), (0, "ahead ok\n", ""))
        self.assertEqual(self.taken(counters), 0)

    def limited(self, limit, rank):
        """One rank may not have the 8 GB that these settings ask for; MPI itself needs less."""
        command = ["sh", "-c", f'test "${{PMI_RANK:-$PMIX_RANK}}" != {rank} || {limit}; exec ' +
                   self.program("semantics") + " others"]
        large = {"SAPWOOD_BYPASS_CHUNK_BYTES": str(1 << 20), "SAPWOOD_BYPASS_RING": "1024"}
        code, output, errors, counters = self.start(4, command, large)
        self.assertEqual((code, output), (0, "others ok\n"), errors)
        self.assertEqual(self.taken(counters), 0)
        self.assertGreater(self.left(counters, "no_memory"), 0)

    def test_memory_refused_to_its_maker_falls_back_at_all(self):
        self.limited("ulimit -f 1000000", 0)

    def test_memory_refused_to_one_rank_falls_back_at_all(self):
        self.limited("ulimit -v 6000000", 1)

    def test_the_library_of_the_other_abi_is_refused(self):
        other = {"openmpi": "mpich", "mpich": "openmpi"}[self.abi]
        path = prerequisites.built(OUT, f"{other}/bypass/semantics")
        code, output, errors = launching.execute([path, "ahead"], {**ENVIRONMENT, "LD_PRELOAD": library(self.abi)})
        self.assertEqual((code, output), (2, ""))
        self.assertRegex(errors, rf"\Asapwood: this program runs on .*preload libsapwood-bypass-{other}\.so instead\n\Z")

    def test_programs_that_are_not_mpi_are_left_alone(self):
        told = {"LD_PRELOAD": library(self.abi)}
        self.assertEqual(launching.execute(["bash", "-c", "echo here"], told), (0, "here\n", ""))

    def test_the_library_needs_no_mpi_symbol(self):
        listed = subprocess.run(["nm", "-D", library(self.abi)], capture_output=True, text=True, check=True).stdout
        undefined = [line.split()[-1] for line in listed.splitlines() if line.split()[-2] == "U"]
        self.assertEqual([name for name in undefined if "mpi" in name.lower()], [])


class OpenMpi(EachAbi, unittest.TestCase):
    abi = "openmpi"
    kills = int(os.environ.get("SAPWOOD_BYPASS_KILLS", "50"))
    kill_ranks = 4
    kills_at_once = 4
    ranks = 3

    def test_errors_are_mpis(self):
        self.scenario("errors")
        self.scenario("errors", environment={"BUFFERS": "1"})

    def test_the_laboratory_reports_as_its_schema_says(self):
        report = os.path.join(self.folder, "report.json")
        cell = ["--np", "2", "--doubles", "4", "--skew-us", "0", "--iterations", "20", "--turns", "2"]
        command = [sys.executable, os.path.join(ROOT, "labs", "bypass", "bypass.py"), "--library", library(self.abi)]
        code, _, errors = launching.execute([*command, *cell, "--json", report], ENVIRONMENT)
        self.assertEqual(code, 0, errors)
        assert_fits("bench-bypass-1", report)

    def test_mpi4py(self):
        python = launching.SYSTEM_PYTHON
        if subprocess.run([python, "-c", "import mpi4py.MPI"], capture_output=True, check=False).returncode:
            self.skipTest("no mpi4py here (Debian: python3-mpi4py)")
        code, output, errors, counters = self.start(3, [python, os.path.join(HERE, "reduce_mpi4py.py")])
        self.assertEqual((code, output, errors), (0, "mpi4py ok\n", ""))
        self.assertEqual(self.taken(counters), 150)

    def test_counters_that_a_limit_on_files_refuses_end_no_program(self):
        python = launching.SYSTEM_PYTHON
        if subprocess.run([python, "-c", "import mpi4py.MPI"], capture_output=True, check=False).returncode:
            self.skipTest("no mpi4py here (Debian: python3-mpi4py)")
        # MPI has made its own files by then; Python ignores the signal until it is told otherwise.
        program = ("from mpi4py import MPI; import resource, signal; MPI.COMM_WORLD.Barrier(); "
                   "signal.signal(signal.SIGXFSZ, signal.SIG_DFL); "
                   "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")
        code, _, errors, counters = self.start(2, [python, "-c", program])
        self.assertEqual((code, counters), (0, None), errors)
        self.assertRegex(errors, r"sapwood: cannot write .*job\.json: File too large\n")
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_root_redoes_what_a_dead_rank_did_not_fold(self):
        command, survive = [self.program("dies_in_fold")], ("--mca", "orte_abort_on_non_zero_status", "0")
        _, output, _, _ = self.start(4, command, options=survive)
        self.assertIn("sum 10 of 4", output)

    def test_lammps_prints_the_same_thermodynamics(self):
        if shutil.which("lmp") is None:
            self.skipTest("no lmp here (Debian: lammps)")
        thermo = {}
        for name, preload in (("alone", False), ("taken", True)):
            log = os.path.join(self.folder, f"{name}.log")
            command = ["lmp", "-in", MELT, "-var", "steps", "100", "-var", "cells", "6", "-log", log, "-screen", "none"]
            code, _, errors, counters = self.start(4, command, {"SAPWOOD_BYPASS": ALL}, preload=preload)
            self.assertEqual(code, 0, errors)
            with open(log, encoding="utf-8") as file:
                thermo[name] = re.findall(r"^ +\d+(?: +-?[\d.e+-]+)+ *$", file.read(), re.M)
        self.assertGreater(self.taken(counters), 0)
        self.assertGreater(len(thermo["alone"]), 1)
        self.assertEqual(thermo["alone"], thermo["taken"])


class Mpich(EachAbi, unittest.TestCase):
    abi = "mpich"
    kills = int(os.environ.get("SAPWOOD_BYPASS_KILLS", "50")) // 5
    kill_ranks = 2
    kills_at_once = 1
    # It spins, and there may be two processors.
    ranks = 2


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

"""Asks `sapwood trace why` of PyTorch programs over gloo, which run by `python -m sapwood.torch`.

tests/torch has the programs, and tests/culprits those with an expect.toml beside. Needs the environment that
watched.py names and PyTorch in the system's Python; `make torch-test` sets it.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from standstills import words_until
from watched import HERE, LAUNCHERS, RUN_SECONDS_MAX, SYSTEM_PYTHON, Watched, has_mpi, sapwood
from why import WhyRun, expected_of, ranks_of

ROOT = os.path.join(HERE, "..", "..", "..")
PACKAGE = os.path.join(ROOT, "bindings", "python", "python")
EXAMPLE = os.path.join(ROOT, "bindings", "python", "examples", "torch", "parallel.py")
RANKS = 3
# Below the ports that systems give to those who ask for any.
PORTS = range(20000, 32000)
SLOW_STEPS = 120
TRACED = ["-m", "sapwood.torch"]


def has_torch():
    asked = [SYSTEM_PYTHON, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"]
    return subprocess.run(asked, timeout=RUN_SECONDS_MAX).returncode == 0


def free_port():
    while True:
        port = random.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port


def settings(**more):
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "PYTHONPATH": os.path.abspath(PACKAGE), **more}


def program(name):
    return os.path.join(HERE, "torch", f"{name}.py")


def command(script, *words, ranks=RANKS, traced=True):
    return [*LAUNCHERS["openmpi"], str(ranks), SYSTEM_PYTHON, *(TRACED if traced else []), script, *words]


def alone(*words, traced, ranks=1):
    """One process as rank 0 without a monitor: exit code, standard output and standard error."""
    told = settings(RANK="0", WORLD_SIZE=str(ranks))
    done = subprocess.run([SYSTEM_PYTHON, *(TRACED if traced else []), *words], env={**os.environ, **told},
                          capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    return done.returncode, done.stdout, done.stderr


def end(run):
    """Ends a run whose ranks are inside of gloo and heed no interrupt."""
    ranks = [*run.processes("python3", *TRACED), *run.processes("python3", "-u", *TRACED)]
    run.process.send_signal(signal.SIGINT)
    for rank in ranks:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not has_mpi("openmpi") or not has_torch():
            raise unittest.SkipTest("no Open MPI or no PyTorch here (Debian: python3-torch)")

    def stuck(self, words):
        """Watches a program until a verdict is told, ends it, and gives the verdict."""
        told = []

        def act(run):
            told.append(words_until(run, "waiting: "))
            end(run)

        run = WhyRun(words, out=False, while_running=act, environment=settings())
        self.assertIn("sapwood: stuck for", told[0])
        self.assertIsNotNone(run.why["stuck"], told[0] + run.errors)
        return run.why["stuck"]

    def check(self, stuck, case):
        expected = expected_of(case)
        self.assertEqual(ranks_of(stuck["culprits"]), set(expected["culprits"]), stuck)
        for wanted in expected["waiting"]:
            for rank in wanted["ranks"]:
                [one] = [one for one in stuck["waiting"] if rank in ranks_of(one["ranks"])]
                self.assertEqual((one["function"], one["communicator"]), (wanted["call"], wanted["comm"]), stuck)
                self.assertEqual(ranks_of(one["waits_for"]), set(wanted["for"]), stuck)

    def case(self, name):
        stuck = self.stuck(command(os.path.join(HERE, "culprits", name, "prog.py")))
        self.check(stuck, name)
        return stuck

    def test_gloo_uneven(self):
        [odd] = self.case("gloo_uneven")["odd"]
        self.assertEqual((odd["communicator"], odd["number"]), ("default group", 34))

    def test_gloo_group_order(self):
        self.case("gloo_group_order")

    def test_a_work_that_is_waited_for_is_told_by_what_has_started_it(self):
        stuck = self.stuck(command(program("works")))
        self.assertEqual(stuck["culprits"], "2", stuck)
        [one] = [one for one in stuck["waiting"] if one["ranks"] == "0-1"]
        self.assertEqual((one["function"], one["started_by"], one["number"]), ("Work.wait", "all_reduce", 11), stuck)

    def test_a_message_that_is_not_sent(self):
        stuck = self.stuck(command(program("messages")))
        [one] = [one for one in stuck["waiting"] if one["ranks"] == "1"]
        self.assertEqual((one["function"], one["waits_for"]), ("recv", "0"), stuck)
        [others] = [one for one in stuck["waiting"] if one["ranks"] != "1"]
        self.assertEqual((others["function"], others["waits_for"]), ("barrier", "1"), stuck)

    def test_a_rank_that_is_stopped_is_named(self):
        stuck = self.stuck(command(program("stopped")))
        self.assertEqual((stuck["culprits"], stuck["odd"][0]["doing"]), ("2", "stopped"), stuck)
        for one in stuck["waiting"]:
            self.assertEqual((one["function"], one["communicator"], one["number"]), ("all_reduce", "default group", 21))

    def test_the_rank_that_is_late_in_data_parallel_training_is_named(self):
        run = WhyRun(command(EXAMPLE, "--steps", str(SLOW_STEPS)), out=False, environment=settings())
        self.assertEqual((run.code, run.why["stuck"]), (0, None), run.errors)
        # Gradients and the buffers of the batch norm are places of their own.
        places = {place["function"]: place for place in run.why["slow"]}
        self.assertIn("all_reduce", places, run.why)
        place = places["all_reduce"]
        self.assertEqual(place["communicator"], "default group")
        group = place["groups"][0]
        self.assertEqual((group["ranks"], group["waiting"]), ("1", "0,2"), place)

    def test_a_program_that_goes_on_is_neither_stuck_nor_changed(self):
        for script, *words in ([program("every_call"), "a", "-b"], [EXAMPLE, "--steps", "10", "--slow-rank", "-1"]):
            with self.subTest(script=os.path.basename(script)):
                run = WhyRun(command(script, *words), out=False, environment=settings())
                self.assertEqual((run.code, run.why["stuck"], run.why["deaths"]), (0, None, []), run.errors)
                self.assertEqual(run.why["ranks"], RANKS)
                plain = subprocess.run(command(script, *words, traced=False), env={**os.environ, **settings()},
                                       capture_output=True, text=True, check=True, timeout=RUN_SECONDS_MAX)
                self.assertEqual(run.output, plain.stdout)

    def test_calls_are_counted_under_the_names_of_pytorch(self):
        run = Watched(command(program("every_call")), "--quiet", environment=settings())
        self.assertEqual(run.code, 0, run.errors)
        counts = {}
        for event in run.profile["events"]:
            counts[event["name"]] = counts.get(event["name"], 0) + int(event["calls"]["sum"])
        for name, each in {"all_gather_object": 2, "monitored_barrier": 2, "new_group": 2, "Work.wait": 6}.items():
            self.assertGreaterEqual(counts.get(name, 0), each * RANKS, counts)
        self.assertEqual(counts["barrier"], 3 * RANKS, counts)
        self.assertEqual((counts["send"], counts["recv"]), (1, 1), counts)

    def test_torchrun_starts_ranks_as_well(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-torch-") as folder:
            # PyTorch 1.13 knows no output that goes nowhere under Python 3.11: it goes to files, and on.
            words = [SYSTEM_PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", str(RANKS), "-r", "1", "-t", "1",
                     "--log_dir", folder, "--master_port", str(free_port()), "-m", "sapwood.torch", program("works")]
            self.assertEqual(self.stuck(words)["culprits"], "2")

    def test_a_job_that_is_monitored_already_is_asked(self):
        found = []

        def ask(run):
            words = [sapwood(), "trace", "why", "--job", f"mpi-{run.process.pid}", "--json", "-"]
            done = subprocess.run(words, capture_output=True, text=True, check=False,
                                  timeout=RUN_SECONDS_MAX)
            return done.returncode == 0 and '"deviation"' in done.stdout and done.stdout

        def act(run):
            found.append(run.wait_for("a verdict", lambda: ask(run)))
            end(run)

        script = os.path.join(HERE, "culprits", "gloo_group_order", "prog.py")
        Watched(command(script), "--quiet", "--interval", "200ms", out=False, while_running=act, environment=settings())
        self.assertIn("group 1", found[0])


class Alone(unittest.TestCase):
    """What needs no monitor."""

    @classmethod
    def setUpClass(cls):
        if not has_torch():
            raise unittest.SkipTest("no PyTorch here (Debian: python3-torch)")

    def test_a_script_ends_as_without(self):
        for how in ("error", "exit", "text", "signal", "order"):
            with self.subTest(how=how):
                self.assertEqual(alone(program("raises"), how, traced=True), alone(program("raises"), how, traced=False))

    def test_bad_words_are_refused_in_one_line(self):
        for words in ([], ["--what"], ["-m"], ["nowhere.py"]):
            with self.subTest(words=words):
                code, output, errors = alone(*words, traced=True)
                self.assertEqual((code, output, errors.count("\n")), (2, "", 1), errors)
                self.assertTrue(errors.startswith("sapwood: "), errors)

    def test_the_numbers_of_functions_are_those_of_the_table(self):
        sys.path.insert(0, os.path.join(PACKAGE, "sapwood"))
        try:
            from torch import functions
        finally:
            del sys.path[0]
        ours = {**functions.COLLECTIVES, **functions.MESSAGES, "new_group": functions.NEW_GROUP,
                "DistributedDataParallel": functions.DATA_PARALLEL, "batch_isend_irecv": functions.BATCH,
                "Work.wait": functions.WAIT, "init_process_group": functions.INIT,
                "destroy_process_group": functions.DESTROY}
        with open(os.path.join(HERE, "..", "functions.table"), encoding="utf-8") as table:
            rows = re.findall(r"^(\d+) (\S+) \S+ t ", table.read(), re.MULTILINE)
        self.assertEqual(ours, {name: int(number) for number, name in rows})


if __name__ == "__main__":
    unittest.main()

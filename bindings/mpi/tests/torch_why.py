"""Asks `sapwood trace why` of PyTorch programs over gloo, which run by `python -m sapwood.torch`.

tests/torch has the programs, and tests/culprits those with an expect.toml beside. Importing torch takes each rank
seconds, so that one start serves several cases where it can. Needs the environment that watched.py names and PyTorch
in the system's Python; `make torch-test` sets it.
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
from concurrent.futures import ThreadPoolExecutor

import turns
from watched import HERE, LAUNCHERS, RUN_SECONDS_MAX, SYSTEM_PYTHON, Watched, has_mpi, words_until
from why import WhyRun, expected_of, first_does, ranks_of, until_stuck

ROOT = os.path.join(HERE, "..", "..", "..")
PACKAGE = os.path.join(ROOT, "bindings", "python", "python")
EXAMPLE = os.path.join(ROOT, "bindings", "python", "examples", "torch", "parallel.py")
RANKS = 3
# Below the ports that systems give to programs that ask for any.
PORTS = range(20000, 32000)
# Sockets that keep the ports of this program from other runs of it until it ends.
KEPT = []
SLOW_STEPS = 120
TRACED = ["-m", "sapwood.torch"]


def has_torch():
    asked = [SYSTEM_PYTHON, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"]
    return subprocess.run(asked, timeout=RUN_SECONDS_MAX).returncode == 0


def free_port():
    """A port that no other run of this program is given."""
    while True:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.choice(PORTS)))
        except OSError:
            one.close()
            continue
        # PyTorch binds with this option, too, and so may listen there; a look for a free port binds without it.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        KEPT.append(one)
        return one.getsockname()[1]


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


def plain(*words):
    """Standard output of a program that nothing observes."""
    done = subprocess.run(command(*words, traced=False), env={**os.environ, **settings()}, capture_output=True,
                          text=True, check=True, timeout=RUN_SECONDS_MAX)
    return done.stdout


def until_held_up(run, culprits, functions, until=lambda stuck: True):
    """Waits until these ranks hold up the others, which wait in these functions, and this holds, too; what is said of
    it."""
    def is_it(stuck):
        found = (stuck["culprits"], {one["function"] for one in stuck["waiting"]})
        return found == (culprits, functions) and until(stuck)

    return until_stuck(run, f"ranks in {functions} that wait for {culprits}", is_it)


def has_reader(pipe):
    """Whether a process waits for a writer of a pipe, which then goes on."""
    with contextlib.suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return True
    return False


def is_without_message(stuck):
    """Whether rank 1 waits for rank 0, and the others for rank 1."""
    waiting = {(one["ranks"], one["function"], one["waits_for"]) for one in stuck["waiting"]}
    return ("1", "recv", "0") in waiting and len(waiting) == 2


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not has_mpi("openmpi") or not has_torch():
            raise unittest.SkipTest("no Open MPI or no PyTorch here (Debian: python3-torch)")

    def stuck(self, words, is_it):
        """Watches a program until a verdict is told and one holds for which this is so, ends it, and gives the
        verdict."""
        told = []

        def act(run):
            told.append(words_until(run, "waiting: "))
            until_stuck(run, "the verdict that is wanted", is_it)
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

    def case(self, name, until=lambda stuck: True):
        """The verdict on a case, once it is the one that is expected and this holds, too."""
        def is_it(stuck):
            try:
                self.check(stuck, name)
            except (AssertionError, ValueError):
                return False
            return until(stuck)

        stuck = self.stuck(command(os.path.join(HERE, "culprits", name, "prog.py")), is_it)
        self.check(stuck, name)
        return stuck

    def test_gloo_uneven(self):
        [odd] = self.case("gloo_uneven")["odd"]
        self.assertEqual((odd["communicator"], odd["number"]), ("default group", 34))

    def test_gloo_group_order(self):
        self.case("gloo_group_order")

    def test_gloo_rank0_barrier(self):
        [odd] = self.case("gloo_rank0_barrier")["odd"]
        self.assertEqual((odd["own_function"], odd["number"]), ("barrier", 32), odd)

    def test_gloo_finally(self):
        [odd] = self.case("gloo_finally")["odd"]
        self.assertEqual((odd["own_function"], odd["number"]), ("barrier", 31), odd)

    def test_gloo_loader(self):
        waits = lambda stuck: [one["doing"] for one in stuck["odd"]] in (["sleeping"], ["locked"])
        [odd] = self.case("gloo_loader", waits)["odd"]
        self.assertIn(odd["doing"], ("sleeping", "locked"), odd)

    def test_gloo_send_pair(self):
        stuck = self.case("gloo_send_pair")
        self.assertEqual((stuck["finding"], stuck["ring"]), ("ring", [0, 1]), stuck)

    def test_ddp_uneven(self):
        self.assertEqual(self.case("ddp_uneven")["finding"], "deviation")

    def test_a_job_that_is_monitored_already_is_asked_each_time_it_hangs(self):
        told = {}

        def act(run):
            told["work"] = until_held_up(run, "2", {"Work.wait"})
            run.wait_for("rank 2 at its pipe", lambda: has_reader(os.path.join(folder, "work")))
            told["stopped"] = until_held_up(run, "2", {"all_reduce"}, first_does("stopped"))
            with open(os.path.join(folder, "2"), encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGCONT)
            told["message"] = until_stuck(run, "a message that is not sent", is_without_message)
            end(run)

        with tempfile.TemporaryDirectory(prefix="sapwood-torch-") as folder:
            os.mkfifo(os.path.join(folder, "work"))
            Watched(command(program("cases"), folder), "--quiet", "--interval", "200ms", out=False, while_running=act,
                    environment=settings())
        [one] = told["work"]["waiting"]
        self.assertEqual((one["ranks"], one["started_by"], one["number"]), ("0-1", "all_reduce", 11), one)
        self.assertEqual(told["stopped"]["odd"][0]["doing"], "stopped", told["stopped"])
        for one in told["stopped"]["waiting"]:
            self.assertEqual((one["communicator"], one["number"]), ("default group", 12), one)
        [others] = [one for one in told["message"]["waiting"] if one["ranks"] != "1"]
        self.assertEqual((others["function"], others["waits_for"]), ("barrier", "1"), told["message"])

    def test_the_rank_that_is_late_in_data_parallel_training_is_named_and_nothing_is_changed(self):
        steps = ("--steps", str(SLOW_STEPS))
        run = WhyRun(command(EXAMPLE, *steps), out=False, environment=settings())
        self.assertEqual((run.code, run.why["stuck"], run.why["deaths"]), (0, None, []), run.errors)
        self.assertEqual(run.why["ranks"], RANKS)
        # Gradients and the buffers of the batch norm are places of their own.
        places = {place["function"]: place for place in run.why["slow"]}
        self.assertIn("all_reduce", places, run.why)
        place = places["all_reduce"]
        self.assertEqual(place["communicator"], "default group")
        group = place["groups"][0]
        self.assertEqual((group["ranks"], group["waiting"]), ("1", "0,2"), place)
        # What is computed does not depend on when.
        self.assertEqual(run.output, plain(EXAMPLE, *steps, "--slow-rank", "-1"))

    def test_calls_are_counted_under_the_names_of_pytorch_and_come_to_the_same(self):
        words = (program("every_call"), "a", "-b")
        run = Watched(command(*words), "--quiet", environment=settings())
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual(run.output, plain(*words))
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
            self.assertEqual(self.stuck(words, lambda stuck: stuck["culprits"] == "2")["culprits"], "2")


class Alone(unittest.TestCase):
    """What needs no monitor."""

    @classmethod
    def setUpClass(cls):
        if not has_torch():
            raise unittest.SkipTest("no PyTorch here (Debian: python3-torch)")

    def test_a_script_ends_as_without(self):
        ways = ("error", "exit", "text", "signal", "order")
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            starts = {(how, traced): pool.submit(alone, program("raises"), how, traced=traced)
                      for how in ways for traced in (True, False)}
        for how in ways:
            with self.subTest(how=how):
                self.assertEqual(starts[how, True].result(), starts[how, False].result())

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


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

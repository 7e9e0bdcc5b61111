"""Asks `sapwood trace why` of programs that hang or wait, and compares its answer with what each must be.

tests/culprits has the programs; expect.toml beside each says which ranks are the reason, which wait in
which call for which, and of slow programs which come last. A program that hangs is ended once its verdict
was told; the answer at the end must be the same, though the ranks have been killed by then.

Needs the environment that watched.py names; `make truth` sets it.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import tomllib
import unittest

import prerequisites
import turns
import watched
from lateness import waited_for
from marks import end_a_launcher_that_hangs
from recorded import RecordedRun
from truth import TREES
from watched import HERE, LAUNCHERS, SYSTEM_PYTHON, OneMpi, Watched, sapwood, test_program, words_until

# The sentences of verdicts that name no rank.
NAMELESS = ("no rank is missing: ", "the ranks for which these calls wait are unknown")
# The parts of an answer that say that calls do not fit together.
WRONG = ("mixed", "amounts", "uneven")
# What a program that only waits is watched for.
SLOW_SECONDS = 8
COLLECTIVES_MIN = 10
# What the last rank gives to the twelfth collective of the cases of amounts; the others give 80 bytes.
GIVEN = {
    "bcast": ("MPI_Bcast", 72), "allreduce": ("MPI_Allreduce", 88),
    "ibcast": ("MPI_Ibcast", 72), "iallreduce": ("MPI_Iallreduce", 88), "refused": ("MPI_Iallreduce", 72),
    "ireduce_scatter_block": ("MPI_Ireduce_scatter_block", 64), "ireduce_scatter": ("MPI_Ireduce_scatter", 72),
    "ialltoall": ("MPI_Ialltoall", 64),
}

# The reason of tests of the verdict that is told first.
FIRST = "a rank that gets no processor, or a start that lasts for longer than the deadline, has another verdict before"
# What is said of a rank of which a thread keeps a lock in MPI that another one needs.
LOCKED_OUT = "has another thread that waits for a lock which its thread in MPI holds"

# Rank 2 never comes to the barrier; of rank 1 a thread is in it while its first thread computes.
BESIDE = """
import threading, time
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.rank
if rank == 1:
    threading.Thread(target=world.Barrier, daemon=True).start()
    while True:
        pass
time.sleep(1000) if rank == 2 else world.Barrier()
"""

# The last round is left out by rank 3. Each call is a record, and a ring of 4,096 bytes holds 128 of them.
WRAPPED_ROUNDS = 400
WRAPPED = f"""
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
high = world.Split(world.rank >= 2, world.rank)
high.Set_name("high" if world.rank >= 2 else "low")
width, most = array("d", [1]), array("d", [0])
for step in range({WRAPPED_ROUNDS}):
    if world.rank != 3 or step != {WRAPPED_ROUNDS - 1}:
        high.Allreduce([width, 1, MPI.DOUBLE], [most, 1, MPI.DOUBLE])
world.Barrier()
"""

# All wait for rank 1, and go on; then rank 2 ends without a word.
PASSES = """
import os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
time.sleep(4) if world.rank == 1 else None
world.Barrier()
time.sleep(0.05)
os._exit(3) if world.rank == 2 else world.Barrier()
"""

# The last rank gives more to the twelfth reduction on row, or less to the broadcast, once the others are about to make
# it; mpi4py is told to let MPI end the program.
ABORTS = """
import sys
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
row = world.Dup()
row.Set_name("row")
row.Set_errhandler(MPI.ERRORS_ARE_FATAL)
last = world.size - 1
own, all = array("d", [1] * 16), array("d", [0] * 16)
for step in range(20):
    world.send(0, last) if world.rank != last else [world.recv(source=rank) for rank in range(last)]
    is_odd = world.rank == last and step == 11
    if sys.argv[1] == "bcast":
        row.Bcast([all, 9 if is_odd else 10, MPI.DOUBLE])
    else:
        count = 11 if is_odd else 10
        row.Allreduce([own, count, MPI.DOUBLE], [all, count, MPI.DOUBLE])
"""
# The same with mpi4py's exceptions, for which `python -m mpi4py` ends the program.
RAISES = ABORTS.replace("row.Set_errhandler(MPI.ERRORS_ARE_FATAL)\n", "")


def ranks_of(text):
    """The ranks of a set, as "0,2-3"."""
    ranks = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks


def expected_of(case):
    with open(os.path.join(HERE, "culprits", case, "expect.toml"), "rb") as file:
        return tomllib.load(file)


def why_now(run):
    """What `sapwood trace why --job` says of a run that is watched; None while it says nothing."""
    words = [sapwood(), "trace", "why", "--job", f"mpi-{run.process.pid}", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=watched.RUN_SECONDS_MAX)
    return json.loads(done.stdout) if done.returncode == 0 else None


def until_stuck(run, what, is_it):
    """Waits until a run is stuck in a way for which this holds, and gives it. A rank that finds no processor, or a
    start that lasts for longer than the deadline, has another verdict before."""
    seen = []

    def stuck():
        why = why_now(run)
        seen[:] = [why and why["stuck"]]
        return why and why["stuck"] and is_it(why["stuck"]) and why["stuck"]

    return run.wait_for(what, stuck, seen)


def run_until_stuck(command, what, is_it):
    """A run that is ended once it is stuck in a way for which this holds; and what it told until the first verdict."""
    told = []

    def act(run):
        told.append(words_until(run, "sapwood:   waiting: "))
        until_stuck(run, what, is_it)
        run.process.send_signal(signal.SIGINT)

    run = WhyRun(command, out=False, while_running=act)
    return run, told[0]


def statements(told):
    """The sentences of the verdicts that a run has told, in that order."""
    text = " ".join(line.removeprefix("sapwood:").strip() for line in told.splitlines())
    return re.findall(r"\bstuck for [^:]+: (.*?) waiting: ", text)


def named_in(statement):
    """The ranks that the sentence of a verdict names. One that cannot be read is an error, since a test that no other
    rank is named would pass by it."""
    if statement.startswith(NAMELESS):
        return set()
    if statement.startswith("deadlock in a ring "):
        named = re.findall(r"(\d+) waits for \d", statement)
    else:
        named = re.findall(r"(?:^|; )(?:no majority: )?ranks? (\d[\d,-]*) ", statement)
    if not named:
        raise ValueError(f"which ranks this sentence names is unknown: {statement}")
    return set().union(*map(ranks_of, named))


def does(*words):
    """A condition on a verdict: what the ranks do that are named."""
    return lambda stuck: [one["doing"] for one in stuck["odd"]] == list(words)


def first_does(word):
    """The same of the ranks that are named first."""
    return lambda stuck: bool(stuck["odd"]) and stuck["odd"][0]["doing"] == word


def says(words):
    """The same: words of its sentence."""
    return lambda stuck: words in stuck["statement"]


class WhyRun(RecordedRun):
    """A run of `sapwood trace why`: `why` is its JSON object."""

    def execute(self, words, environment, while_running):
        dashes = words.index("--")
        self.file = os.path.join(self.folder, "why.json")
        words = [sapwood(), "trace", "why", *words[2:dashes], "--json", self.file, *words[dashes:]]
        super().execute(words, environment, while_running)
        with contextlib.suppress(FileNotFoundError), open(self.file, encoding="utf-8") as file:
            self.why = json.load(file)


class WhyTruth(OneMpi):
    """The cases, for one MPI; a subclass names it."""

    trees = tuple(TREES.values())

    def command(self, case, expected, *options):
        program = [test_program(self.abi, os.path.join("culprits", case))]
        script = os.path.join(HERE, "culprits", case, "prog.py")
        if os.path.exists(script):
            program = [SYSTEM_PYTHON, script]
        return [*LAUNCHERS[self.abi], str(expected["ranks"]), *options, *program]

    def stuck(self, case, end=lambda run: run.process.send_signal(signal.SIGINT), words=(),
              until=lambda stuck: True, is_first=False):
        """Watches a program, with these words as its arguments, until a verdict is told and the one holds that is
        wanted, for which `until` is a further condition; ends it, and checks the verdict. No rank may be named where
        expect.toml says by `unknown` that, and why, the culprits are not found. With `is_first` it is the one that is
        told first, and none that is told names another rank: for tests that run alone."""
        expected = expected_of(case)
        if "unknown" in expected:
            expected["culprits"] = []
        told = []

        def act(run):
            told.append(words_until(run, "sapwood:   waiting: "))
            if not is_first:
                until_stuck(run, f"the verdict on {case}", lambda stuck: self.fits(stuck, expected) and until(stuck))
            end(run)

        run = WhyRun([*self.command(case, expected), *words], out=False, while_running=act)
        self.assertIn("sapwood: stuck for", told[0])
        self.assertIsNotNone(run.why["stuck"], told[0] + run.errors)
        self.check_stuck(run.why["stuck"], expected)
        self.assertTrue(until(run.why["stuck"]), run.why["stuck"])
        self.assertTrue(run.why["has_ended"], run.why)
        self.assertNotIn("sapwood:", run.output)
        if is_first:
            culprits, said = set(expected["culprits"]), statements(told[0] + run.errors)
            self.assertEqual(named_in(said[0]), culprits, said)
            self.assertEqual([one for one in said if not named_in(one) <= culprits], [])
        return run.why["stuck"]

    def fits(self, stuck, expected):
        """Whether a verdict is the one that is expected."""
        try:
            self.check_stuck(stuck, expected)
        except (AssertionError, ValueError):
            return False
        return True

    def check_stuck(self, stuck, expected):
        self.assertEqual(ranks_of(stuck["culprits"]), set(expected["culprits"]), stuck)
        for wanted in expected.get("waiting", []):
            if wanted["call"] == "MPI_Finalize":
                continue
            if wanted["call"] == "MPI_Test":
                # Each of these calls returns: ranks that make them are told by what they do.
                self.assertEqual([one["doing"] for one in stuck["odd"]], ["polling"], stuck)
                continue
            for rank in wanted["ranks"]:
                [one] = [one for one in stuck["waiting"] if rank in ranks_of(one["ranks"])]
                self.assertEqual(one["function"], wanted["call"], stuck)
                self.assertEqual(ranks_of(one["waits_for"]), set(wanted["for"]), stuck)
                if "may" in wanted:
                    self.assertEqual(ranks_of(one["may_wait_for"]), set(wanted["may"]), stuck)
                    self.assertEqual(one["tags"], wanted["tags"], stuck)
                if " " not in wanted["comm"]:
                    self.assertEqual(one["communicator"], wanted["comm"], stuck)

    def slow(self, case, *options):
        """Watches a program for some seconds, and gives its answer and the place in which most time is lost."""
        def act(run):
            time.sleep(SLOW_SECONDS)
            run.process.send_signal(signal.SIGINT)

        run = WhyRun(self.command(case, expected_of(case), *options), out=False, while_running=act)
        self.assertIsNone(run.why["stuck"], run.errors)
        place = run.why["slow"][0]
        self.assertEqual((place["function"], place["communicator"]), ("MPI_Allreduce", "MPI_COMM_WORLD"))
        self.assertGreaterEqual(place["collectives"], COLLECTIVES_MIN)
        self.assertGreaterEqual(run.why["events"], place["collectives"], run.why)
        self.assertEqual(run.why["events_dropped"], 0, run.why)
        self.assertIn("1. MPI_Allreduce on MPI_COMM_WORLD", run.errors)
        return run, place

    def told_as_wrong(self, case, kind):
        """What is said of calls that do not fit together, of a program that does not hang: with all trees the same."""
        answers = []
        for tree in self.trees:
            with tempfile.TemporaryDirectory() as notes:
                program = [test_program(self.abi, "waits"), case, os.path.join(notes, "notes")]
                run = WhyRun([*LAUNCHERS[self.abi], "4", *program], *tree, out=False)
            self.assertEqual((run.code, run.why["stuck"]), (0, None), run.errors)
            self.assertEqual([name for name in WRONG if run.why[name]], [kind], run.errors)
            answers.append(run.why[kind])
            text = " ".join(line.removeprefix("sapwood:").strip() for line in run.errors.splitlines())
            self.assertIn(f"wrong: {answers[-1][0]['text']}", text)
        for answer in answers[1:]:
            self.assertEqual(answer, answers[0])
        [one] = answers[0]
        self.assertEqual(one["culprit"], 3)
        return one

    def mixed(self, case):
        one = self.told_as_wrong(case, "mixed")
        self.assertEqual(one["communicator"], "MPI_COMM_WORLD")
        return one

    def test_a_rank_that_leaves_out_a_call_is_named_though_none_waits_for_it(self):
        one = self.mixed("mixed")
        bcast = {"function": "MPI_Bcast", "root": 0, "count": 3, "lowest": 0}
        self.assertEqual(one["calls"], [{"function": "MPI_Allreduce", "root": None, "count": 1, "lowest": 3}, bcast])
        # Of 39 and 40 calls: all after the first ten rounds.
        self.assertEqual((one["number"], one["collectives"]), (21, 19))

    def test_a_rank_that_gives_another_root_is_named_though_none_waits_for_it(self):
        one = self.mixed("roots")
        self.assertEqual([(call["root"], call["count"]) for call in one["calls"]], [(3, 1), (0, 3)])
        self.assertEqual((one["number"], one["collectives"]), (11, 1))

    def test_a_rank_that_leaves_out_a_call_is_named_though_all_its_calls_are_alike(self):
        fewer = {"collectives": 19, "count": 1, "lowest": 3}
        # Of the communicator between two groups, those of the second one.
        for case, lowest in (("fewer", 0), ("line", 0), ("across", 1)):
            one = self.told_as_wrong(case, "uneven")
            most = {"collectives": 20, "count": 3 - lowest, "lowest": lowest}
            self.assertEqual((one["calls"], one["communicator"]), ([fewer, most], "row"), case)

    def test_of_a_right_program_no_call_is_called_wrong(self):
        for case in ("made", "makers", "collectives", "communicators", "started", "untold", "refused"):
            for tree in self.trees:
                with tempfile.TemporaryDirectory() as notes:
                    program = [test_program(self.abi, "waits"), case, os.path.join(notes, "notes")]
                    threaded = {"WAITS_THREADED": "1"} if case == "makers" else {}
                    run = WhyRun([*LAUNCHERS[self.abi], "4", *program], *tree, out=False, environment=threaded)
                self.assertEqual((run.code, *(run.why[name] for name in WRONG)), (0, [], [], []), (case, run.errors))

    def test_a_rank_that_gives_another_amount_is_named_though_the_call_returns(self):
        expected = expected_of("unequal_amounts")
        for tree in self.trees:
            run = WhyRun(self.command("unequal_amounts", expected), *tree, out=False)
            self.assertEqual((run.code, run.why["stuck"]), (0, None), run.errors)
            self.assertEqual([name for name in WRONG if run.why[name]], ["amounts"], run.errors)
            [one] = run.why["amounts"]
            most = {"bytes": 80, "count": 3, "lowest": 0}
            self.assertEqual(one["amounts"], [{"bytes": 72, "count": 1, "lowest": 3}, most])
            self.assertEqual((one["function"], one["number"], one["collectives"]), ("MPI_Reduce", 12, 1), one)
            self.assertEqual([one["culprit"]], expected["culprits"], one)
            said = "wrong: MPI_Reduce number 12 on row: rank 3 gave 72 bytes where 3 ranks gave 80 bytes"
            self.assertIn(said, run.errors)

    def aborted(self, case, call, command=None, ends=True, words=(), trees=None):
        """Checks what is said of a program that ends for this call, to which rank 3 gave another amount; without
        `ends` the MPI may take no notice of it. The program has these words behind the call. With all trees, or these:
        of several calls that end a program in one way each has one tree, by turns."""
        expected = expected_of(case)
        function, bytes_ = GIVEN[call]

        def act(run):
            end_a_launcher_that_hangs(run.process, run.mark, watched.RUN_SECONDS_MAX)

        for tree in trees or self.trees:
            program = [*(command or self.command(case, expected)), call, *words]
            run = WhyRun(program, *tree, out=False, while_running=act)
            if ends:
                self.assertNotEqual(run.code, 0)
            self.assertEqual([name for name in WRONG if run.why[name]], ["amounts"], run.errors)
            [one] = run.why["amounts"]
            most = {"bytes": 80, "count": 3, "lowest": 0}
            self.assertEqual(one["amounts"], [{"bytes": bytes_, "count": 1, "lowest": 3}, most], run.errors)
            self.assertEqual((one["function"], one["number"], one["communicator"]), (function, 12, "row"), one)
            self.assertEqual([one["culprit"]], expected["culprits"], one)
            text = " ".join(line.removeprefix("sapwood:").strip() for line in run.errors.splitlines())
            said = f"wrong: {function} number 12 on row: rank 3 gave {bytes_} bytes where 3 ranks gave 80 bytes"
            self.assertIn(said, text)
            inside = [end["inside"] for end in run.why["ends"]]
            self.assertFalse([call for call in inside if call.endswith(" on a communicator")], run.errors)

    def test_a_rank_that_gives_less_to_a_broadcast_is_named_though_mpi_ends_the_program_there(self):
        self.aborted("aborted_amounts", "bcast")

    def test_a_rank_that_gives_more_to_a_reduction_is_named_though_mpi_ends_another_one_there(self):
        self.aborted("aborted_amounts", "allreduce")

    def test_a_rank_that_gives_less_to_a_broadcast_is_named_though_its_call_returns_an_error(self):
        self.aborted("failed_amounts", "bcast")

    def test_a_rank_that_gives_more_to_a_reduction_is_named_though_the_call_of_another_one_returns_an_error(self):
        self.aborted("failed_amounts", "allreduce")

    def test_a_rank_is_named_that_goes_on_behind_a_call_which_has_failed_for_its_amount(self):
        one = self.told_as_wrong("truncated", "amounts")
        most = {"bytes": 8, "count": 3, "lowest": 0}
        self.assertEqual(one["amounts"], [{"bytes": 4, "count": 1, "lowest": 3}, most])
        self.assertEqual((one["function"], one["number"], one["collectives"]), ("MPI_Bcast", 21, 1), one)

    def test_a_rank_is_named_that_gives_another_amount_to_a_collective_which_it_starts(self):
        # Open MPI ends the program in a wait for it.
        for call in ("ibcast", "iallreduce"):
            self.aborted("started_amounts", call, ends=self.abi == "openmpi")

    def test_a_rank_is_named_that_gives_another_amount_to_the_call_that_starts_a_collective_and_dies_there(self):
        calls = ("refused", "ireduce_scatter_block", "ireduce_scatter", "ialltoall")
        for call, *trees in zip(calls, itertools.cycle(self.trees)):
            with self.subTest(call=call):
                self.aborted("started_amounts", call, trees=trees)

    def test_a_rank_is_named_that_dies_so_though_its_communicator_has_the_place_of_another_one_in_the_shim(self):
        calls = ("ireduce_scatter_block", "ireduce_scatter", "ialltoall")
        for call, *trees in zip(calls, itertools.cycle(self.trees)):
            with self.subTest(call=call):
                self.aborted("started_amounts", call, words=("meeting",), trees=trees)

    def test_no_rank_is_accused_of_the_collective_in_which_a_program_died_that_gave_the_same_by_other_types(self):
        for tree in self.trees:
            run = WhyRun([*self.command("aborted_amounts", expected_of("aborted_amounts")), "types"], *tree, out=False)
            self.assertNotEqual(run.code, 0)
            self.assertEqual([run.why[name] for name in WRONG], [[], [], []], run.errors)
            self.assertTrue(run.why["ends"], run.errors)

    def test_no_rank_is_accused_whose_amounts_may_differ(self):
        for tree in self.trees:
            run = WhyRun(self.command("equal_amounts", expected_of("equal_amounts")), *tree, out=False)
            self.assertEqual((run.code, *(run.why[name] for name in WRONG)), (0, [], [], []), run.errors)
            self.assertGreater(run.why["collectives"], 100, run.errors)

    @turns.alone(turns.LATENESS)
    def test_a_rank_that_was_held_up_by_the_late_one_before_the_collective_is_not_named(self):
        for tree in self.trees:
            with tempfile.TemporaryDirectory() as notes:
                program = [test_program(self.abi, "waits"), "passed-on", os.path.join(notes, "notes")]
                run = WhyRun([*LAUNCHERS[self.abi], "4", *program], *tree, out=False)
            group = run.why["slow"][0]["groups"][0]
            self.assertEqual((group["ranks"], group["waiting"]), ("3", "0-1"), run.errors)
            # Of the two that come together, either may be the last one.
            last = {"2": "rank 3 held up rank 2, which came last", "3": "rank 3 came last", "2-3": "rank 3 came last"}
            self.assertIn(last[group["came_last"]], run.errors)

    def persistent(self, case):
        """The command that starts persistent collectives with four ranks, where this MPI has them."""
        program = prerequisites.built(watched.library_folder(), f"{self.abi}/persistent")
        return [*LAUNCHERS[self.abi], "4", program, case]

    @turns.alone(turns.LATENESS)
    def test_a_rank_that_is_late_to_persistent_collectives_is_named(self):
        run = WhyRun(self.persistent("late"), *TREES[2], out=False)
        self.assertEqual((run.code, run.why["stuck"]), (0, None), run.errors)
        self.assertEqual([name for name in WRONG if run.why[name]], [], run.errors)
        places = {place["function"]: place for place in run.why["slow"] if place["communicator"] == "row"}
        self.assertEqual(set(places), {"MPI_Allreduce_init", "MPI_Bcast_init"}, run.errors)
        for function, place in places.items():
            self.assertEqual(place["collectives"], 50, place)
            # Ranks that spin take turns on few cores: by the ranks' own events others may come late, too.
            self.assertTrue({3} <= ranks_of(place["groups"][0]["ranks"]) <= {3} | waited_for(run, function), place)

    def assert_skipped_start_is_named(self, case, messages):
        """Rank 3 does not start the reduction for the 41st time, and waits for a message on this communicator."""
        is_named = lambda stuck: (stuck["culprits"], stuck["finding"]) == ("3", "deviation")
        run, _ = run_until_stuck(self.persistent(case), "rank 3 without the reduction", is_named)
        stuck = run.why["stuck"]
        self.assertEqual((stuck["culprits"], stuck["finding"]), ("3", "deviation"), run.errors)
        keys = ("function", "started_by", "communicator", "number", "waits_for")
        waiting = {one["ranks"]: tuple(one[key] for key in keys) for one in stuck["waiting"]}
        self.assertEqual(waiting, {"0-2": ("MPI_Wait", "MPI_Allreduce_init", "row", 41, "3"),
                                   "3": ("MPI_Recv", None, messages, 0, "0")})
        odd = [tuple(one[key] for key in ("ranks", "communicator", "number", "made")) for one in stuck["odd"]]
        self.assertEqual(odd, [("3", "row", 41, 40)], stuck)

    def test_a_rank_that_does_not_start_a_persistent_collective_is_named(self):
        self.assert_skipped_start_is_named("skips", "row")

    def test_a_rank_that_does_not_start_a_persistent_collective_of_a_freed_communicator_is_named(self):
        self.assert_skipped_start_is_named("freed", "MPI_COMM_WORLD")

    def test_no_rank_is_accused_where_ranks_start_persistent_collectives_in_different_orders(self):
        run = WhyRun(self.persistent("orders"), *TREES[2], out=False)
        self.assertEqual((run.code, run.why["stuck"], *(run.why[name] for name in WRONG)), (0, None, [], [], []),
                         run.errors)
        self.assertNotIn("wrong:", run.errors)
        # A barrier, a reduction, and one start of each request.
        self.assertEqual(run.why["collectives"], 50 * 4, run.errors)

    def test_error_exit_barrier(self):
        stuck = self.stuck("error_exit_barrier")
        self.assertEqual(stuck["finding"], "deviation")
        self.assertEqual((stuck["odd"][0]["own_function"], stuck["odd"][0]["number"]), ("MPI_Barrier", 41))

    def test_early_break(self):
        stuck = self.stuck("early_break")
        self.assertEqual(stuck["finding"], "deviation")
        [odd] = stuck["odd"]
        self.assertEqual((odd["communicator"], odd["number"], odd["made"]), ("high", 40, 39))

    def test_where_the_rank_is_that_is_named_is_told_by_its_call_stack(self):
        def act(run):
            words_until(run, "sapwood:   rank 3 is in P?MPI_Barrier")
            run.process.send_signal(signal.SIGINT)

        run = WhyRun(self.command("early_break", expected_of("early_break")), out=False, while_running=act)
        [stack] = run.why["stuck"]["stacks"]
        self.assertEqual(stack["ranks"], "3")
        functions = [frame.split()[0] for frame in stack["frames"]]
        self.assertIn(functions[0], ("MPI_Barrier", "PMPI_Barrier"), stack)
        self.assertEqual(functions[-1], "main", stack)
        self.assertIn(f"rank 3 is in {stack['frames'][0]}", run.errors)

    def test_comm_cycle(self):
        stuck = self.stuck("comm_cycle")
        self.assertEqual((stuck["finding"], stuck["ring"]), ("ring", [0, 1, 2]))

    def test_test_poll_tag(self):
        self.assertIn("rank 1 calls MPI_Test over and over", self.stuck("test_poll_tag")["statement"])

    def test_win_lock(self):
        stuck = self.stuck("win_lock")
        self.assertRegex(stuck["statement"], r"^rank 2 has the lock for which others wait in MPI_Win_\w+ on slots at its rank 0")

    @turns.alone(FIRST)
    def test_stopped_rank(self):
        self.stuck("stopped_rank", until=first_does("stopped"), is_first=True)

    @turns.alone(FIRST)
    def test_split_missing(self):
        stuck = self.stuck("split_missing", is_first=True)
        self.assertEqual((stuck["finding"], stuck["odd"][0]["own_function"]), ("deviation", "MPI_Allreduce"), stuck)

    @turns.alone(FIRST)
    def test_sendrecv_tag(self):
        self.assertEqual(self.stuck("sendrecv_tag", is_first=True)["finding"], "deviation")

    def test_probe_unmatched(self):
        self.assertEqual(self.stuck("probe_unmatched")["finding"], "deviation")

    def test_file_lock(self):
        self.stuck("file_lock", until=does("sleeping"))

    def test_halo_reader(self):
        [odd] = self.stuck("halo_reader", until=does("sleeping"))["odd"]
        self.assertEqual((odd["function"], odd["held"]), ("MPI_Waitall", "0-1,3"), odd)

    def test_neighbor_missing(self):
        [odd] = self.stuck("neighbor_missing")["odd"]
        self.assertEqual((odd["communicator"], odd["number"], odd["made"]), ("ring", 41, 40), odd)

    def test_ibarrier_poll(self):
        def are_all_there(stuck):
            started = {one["function"]: one["started_by"] for one in stuck["waiting"]}
            return started == {"MPI_Test": "MPI_Ibarrier", "MPI_Barrier": None}

        [odd] = self.stuck("ibarrier_poll", until=are_all_there)["odd"]
        self.assertEqual((odd["communicator"], odd["number"], odd["made"]), ("nbx", 41, 40), odd)

    def test_halo_arrived(self):
        stuck = self.stuck("halo_arrived", until=does("sleeping"))
        [one] = [one for one in stuck["waiting"] if one["ranks"] == "0"]
        self.assertEqual((one["any"], one["other_requests"]), (False, True), one)

    def test_any_source_count(self):
        self.stuck("any_source_count")

    def test_bcast_count(self):
        [odd] = self.stuck("bcast_count")["odd"]
        self.assertEqual(odd["own_function"], "MPI_Bcast", odd)

    @turns.alone(turns.LATENESS)
    def test_slow_rank(self):
        run, place = self.slow("slow_rank")
        group = place["groups"][0]
        self.assertEqual((group["ranks"], group["waiting"]), ("1", "0,2-3"), place)
        self.assertGreater(group["times_last"], place["collectives"] / 2)
        self.assertEqual(run.why["links"], [])


class OpenMpi(WhyTruth, unittest.TestCase):
    abi = "openmpi"

    def test_gather_root(self):
        [odd] = self.stuck("gather_root")["odd"]
        self.assertEqual((odd["own_root"], odd["common_root"], odd["own_function"]), (3, 0, "MPI_Gather"))

    def test_a_rank_of_a_program_of_mpi4py_is_named_whose_amount_made_mpi_end_it(self):
        command = [*LAUNCHERS[self.abi], "4", SYSTEM_PYTHON, "-c", ABORTS]
        for call, *trees in zip(("bcast", "allreduce"), self.trees):
            self.aborted("aborted_amounts", call, command, trees=trees)

    def test_a_rank_of_a_program_of_mpi4py_is_named_whose_amount_made_a_call_raise_an_exception(self):
        command = [*LAUNCHERS[self.abi], "4", SYSTEM_PYTHON, "-m", "mpi4py", "-c", RAISES]
        for call, *trees in zip(("bcast", "allreduce"), self.trees[1:]):
            self.aborted("failed_amounts", call, command, trees=trees)

    def test_exception_finalize(self):
        self.stuck("exception_finalize", until=first_does("finalizing"))

    def test_io_empty_rank(self):
        self.assertEqual(self.stuck("io_empty_rank")["odd"][0]["own_function"], "MPI_File_close")

    def test_icoll_missing(self):
        stuck = self.stuck("icoll_missing")
        started = {one["function"]: one["started_by"] for one in stuck["waiting"]}
        self.assertEqual(started, {"MPI_Wait": "MPI_Iallreduce", "MPI_Barrier": None})

    def test_thread_lock(self):
        self.stuck("thread_lock", until=says(f"rank 0 {LOCKED_OUT}"))

    def test_held_lock(self):
        self.stuck("held_lock", until=says(f"rank 1 {LOCKED_OUT}"))

    def test_own_lock(self):
        stuck = self.stuck("own_lock", until=does("locked"))
        self.assertIn("rank 2 waits for a lock outside MPI", stuck["statement"])

    def test_other_root(self):
        def is_named(stuck):
            return [(odd["own_root"], odd["common_root"], odd["number"]) for odd in stuck["odd"]] == [(1, 0, 21)]

        self.stuck("other_root", until=is_named)

    def test_a_rank_that_waits_in_a_call_from_which_the_others_have_returned_is_named_by_its_root(self):
        said = "sapwood: wrong: rank 3 called MPI_Bcast with root 2 where 3 ranks called MPI_Bcast with root 0"
        for tree in self.trees:
            def act(run):
                words_until(run, re.escape(said), "sapwood:   waiting: ")
                run.process.send_signal(signal.SIGINT)

            with tempfile.TemporaryDirectory() as notes:
                program = [test_program(self.abi, "waits"), "astray", os.path.join(notes, "notes")]
                run = WhyRun([*LAUNCHERS[self.abi], "4", *program], *tree, out=False, while_running=act)
            self.assertIsNotNone(run.why["stuck"], run.errors)
            [one] = run.why["mixed"]
            self.assertEqual((one["culprit"], one["number"], one["communicator"]), (3, 11, "MPI_COMM_WORLD"), one)

    @turns.alone(FIRST)
    def test_send_ring(self):
        stuck = self.stuck("send_ring", is_first=True)
        self.assertEqual((stuck["finding"], stuck["ring"]), ("ring", [0, 1, 2, 3]))

    def test_fence_missing(self):
        self.assertEqual(self.stuck("fence_missing")["finding"], "deviation")

    def test_fence_parts(self):
        self.assertEqual(self.stuck("fence_parts")["finding"], "deviation")

    def test_free_order(self):
        stuck = self.stuck("free_order")
        self.assertEqual((stuck["finding"], stuck["ring"]), ("ring", [0, 1]), stuck)

    def test_halo_several(self):
        stuck = self.stuck("halo_several", until=does("sleeping"))
        [one] = [one for one in stuck["waiting"] if one["ranks"] == "3"]
        self.assertEqual((one["any"], one["other_requests"]), (False, False), one)
        text = "rank 3 in MPI_Waitall for some of the messages from ranks 1-2 with tags 7, 9 on halo, for "
        self.assertTrue(one["text"].startswith(text), one)

    def test_between_reader(self):
        self.stuck("between_reader", until=does("sleeping"))

    def test_where_it_is_not_known_for_whom_ranks_wait_no_victim_is_named(self):
        cases = {case for case in os.listdir(os.path.join(HERE, "culprits")) if "unknown" in expected_of(case)}
        self.assertEqual(cases, {"halo_skipped", "join_missing", "group_missing", "isend_ring"})
        for case in sorted(cases):
            with self.subTest(case=case):
                self.stuck(case, until=lambda stuck: stuck["finding"] == "unknown")

    @turns.alone("the pauses of the program are shorter than the deadline by a part only")
    def test_hang_after_pauses(self):
        # Each takes 0.66 s; `run_with` in expect.toml says why these are enough.
        self.stuck("hang_after_pauses", words=("24",), is_first=True)

    @turns.alone(turns.LATENESS)
    def test_two_phases(self):
        _, place = self.slow("two_phases")
        # Of two ranks that come together the one may come before the other always.
        pairs = {(group["ranks"], group["waiting"]) for group in place["groups"][:2]}
        self.assertEqual(pairs, {("0-1", "2-3"), ("2-3", "0-1")}, place)

    @turns.alone(turns.LATENESS)
    def test_late_checkpoint(self):
        _, place = self.slow("late_checkpoint")
        group = place["groups"][0]
        self.assertEqual((group["ranks"], group["waiting"]), ("0", "1-3"), place)
        self.assertLess(group["times_late"], place["collectives"] / 2)
        self.assertGreater(group["late_s"], 0.5)

    @turns.alone(turns.LATENESS)
    def test_slow_link(self):
        run, place = self.slow("slow_link", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
        self.assertEqual(place["groups"][0]["ranks"], "3")
        [link] = run.why["links"]
        self.assertEqual((link["from"], link["to"]), (2, 3), link)
        self.assertIn("the link from rank 2 to rank 3 is slow", run.errors)

    def test_a_verdict_outlives_a_launcher_that_is_ended_by_another(self):
        def end(run):
            [launcher] = run.processes("mpirun.openmpi")
            os.kill(launcher, signal.SIGTERM)

        self.stuck("error_exit_barrier", end)

    @turns.alone(FIRST)
    def test_a_program_that_went_on_before_it_died_was_not_stuck_when_it_ended(self):
        run = WhyRun([*LAUNCHERS[self.abi], "4", SYSTEM_PYTHON, "-c", PASSES], out=False)
        self.assertIn("sapwood: stuck for", run.errors)
        self.assertEqual((run.why["stuck"], run.why["passed"]), (None, 1), run.errors)
        self.assertEqual((run.why["ends"][0]["ranks"], run.why["ends"][0]["is_first"]), ("2", True), run.why)

    @turns.alone("a rank that gets no processor does not seem to compute")
    def test_a_rank_that_computes_beside_its_thread_in_the_collective_has_come(self):
        run, told = run_until_stuck([*LAUNCHERS[self.abi], "4", SYSTEM_PYTHON, "-c", BESIDE], "rank 2 that sleeps",
                                    lambda stuck: stuck["culprits"] == "2" and first_does("sleeping")(stuck))
        stuck = run.why["stuck"]
        self.assertEqual((stuck["culprits"], stuck["odd"][0]["doing"]), ("2", "sleeping"), run.errors)
        said = statements(told + run.errors)
        self.assertTrue(said, run.errors)
        self.assertEqual([one for one in said if 1 in named_in(one)], [])

    def test_a_rank_that_leaves_out_a_call_is_named_though_its_ring_has_wrapped(self):
        expected = expected_of("early_break")

        def act(run):
            words_until(run, f"number {WRAPPED_ROUNDS} on high", "sapwood:   waiting: ")
            run.process.send_signal(signal.SIGINT)

        command = [*LAUNCHERS[self.abi], str(expected["ranks"]), SYSTEM_PYTHON, "-c", WRAPPED]
        run = WhyRun(command, out=False, while_running=act, environment={"SAPWOOD_MPI_RING_BYTES": "4096"})
        stuck = run.why["stuck"]
        self.check_stuck(stuck, expected)
        [odd] = stuck["odd"]
        wanted = ("high", WRAPPED_ROUNDS, WRAPPED_ROUNDS - 1)
        self.assertEqual((odd["communicator"], odd["number"], odd["made"]), wanted, odd)

    def test_how_ranks_ended_is_told_as_fields_too(self):
        # Below one leaf, which knows the order of the ends that it notices.
        program = [*LAUNCHERS[self.abi], "4", test_program(self.abi, "waits"), "dies", "notes"]
        run = WhyRun(program, *TREES[1], out=False)
        self.assertNotEqual(run.code, 0)
        first = run.why["ends"][0]
        self.assertEqual((first["ranks"], first["is_first"], first["is_in_order"]), ("3", True, False), run.why)
        self.assertEqual([end["text"] for end in run.why["ends"]], run.why["deaths"])

    def test_a_program_that_goes_on_is_neither_stuck_nor_changed(self):
        command = [*LAUNCHERS[self.abi], "2", test_program(self.abi, "solver")]
        run = WhyRun(command, out=False)
        self.assertEqual((run.code, run.why["stuck"], run.why["passed"]), (0, None, 0), run.errors)
        self.assertNotIn("stuck", run.errors)
        alone = subprocess.run(command, capture_output=True, text=True, check=True, timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual(sorted(run.output.splitlines()), sorted(alone.stdout.splitlines()))

    def test_a_job_that_is_monitored_already_is_asked(self):
        expected = expected_of("early_break")
        found = []

        def is_stuck(run):
            why = why_now(run)
            return why and why["stuck"] and self.fits(why["stuck"], expected) and why

        def act(run):
            found.append(run.wait_for("a verdict", lambda: is_stuck(run)))
            run.process.send_signal(signal.SIGTERM)

        Watched(self.command("early_break", expected), "--quiet", "--interval", "200ms", out=False, while_running=act)
        self.check_stuck(found[0]["stuck"], expected)
        self.assertIn("how long ranks have waited: calls were not recorded", found[0]["unknown"])


class Mpich(WhyTruth, unittest.TestCase):
    abi = "mpich"
    # That trees of all shapes answer alike is shown with Open MPI.
    trees = (TREES[2],)


class Sentences(unittest.TestCase):
    """Of verdicts, as these tests read them."""

    def test_the_ranks_that_a_sentence_names_are_read_or_it_is_an_error(self):
        for sentence, named in (
            ("rank 3 is sleeping outside MPI for 2.0 s, and has not entered MPI_Barrier number 4", {3}),
            ("ranks 0-1,5 have died, in MPI_Recv; rank 7 has ended", {0, 1, 5, 7}),
            ("no majority: rank 0 called MPI_Bcast where others called MPI_Barrier; rank 1 called MPI_Barrier", {0, 1}),
            ("deadlock in a ring of 2 ranks: 0 waits for 10 (MPI_Recv), 10 waits for 0 (MPI_Recv)", {0, 10}),
            ("no rank is missing: all have entered the call in which they wait", set()),
            ("the ranks for which these calls wait are unknown", set()),
        ):
            self.assertEqual(named_in(sentence), named, sentence)
        for sentence in ("two ranks are missing", "process 3 is sleeping", ""):
            self.assertRaises(ValueError, named_in, sentence)


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

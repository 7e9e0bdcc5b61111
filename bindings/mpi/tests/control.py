"""Control of runs of `sapwood mpi`: settings that ranks obey, iterations, ends of ranks, advice.

Needs the environment that watched.py names.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import turns
import watched
from marks import kill, marked
from paced import Paced
from watched import LAUNCHERS, OneMpi, Watched, preloaded, sapwood, test_program, wait_until, whole_lines

RANKS = 3
EVERYONE = f"0-{RANKS - 1}"
# How long a busy machine takes to obey is not what is tested.
PATIENCE = ["--timeout", f"{watched.RUN_SECONDS_MAX - 20}s"]
# Two leaves, below a communication process each.
TREE = ["--ranks-per-leaf", "2", "--topology", "2x1", "--interval", "200ms"]
# One leaf, which knows the order of the ends that it notices.
CHAIN = ["--topology", "1x1x1", "--interval", "200ms"]


def members(ranks):
    """The numbers in a set of ranks, such as 0-2,5."""
    bounds = [part.split("-") for part in ranks.split(",") if part]
    return [rank for ends in bounds for rank in range(int(ends[0]), int(ends[-1]) + 1)]


class LeftRunning:
    """Whether only these ranks still run after the iterations of all, as far as the front-end knows."""

    def __init__(self, runtime, ranks, iterations):
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        self.ranks = ranks
        self.iterations = iterations
        # The round that is known once all iterations have passed; none before.
        self.first_round = None

    def look(self):
        """The front-end may not listen yet."""
        done = subprocess.run([sapwood(), "mpi", "control", "--json"], env=self.environment, capture_output=True, text=True,
                              timeout=watched.RUN_SECONDS_MAX, check=False)
        if done.returncode != 0:
            return False
        reply = json.loads(done.stdout)
        if reply["iterations"] < self.iterations:
            return False
        if self.first_round is None:
            self.first_round = reply["rounds"]
        # That round, and one that is under way, may be of a time at which not all ranks had come.
        return reply["rounds"] > self.first_round + 1 and reply["running"] == self.ranks


class Control(OneMpi):
    def setUp(self):
        # Networks of other runs of this user are not found there.
        self.runtime = self.enterContext(tempfile.TemporaryDirectory(prefix="sapwood-mpi-control-"))

    def control(self, *words, code=0):
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        patience = [] if "--timeout" in words else PATIENCE
        done = subprocess.run([sapwood(), "mpi", "control", *patience, *words], env=environment, capture_output=True,
                              text=True, timeout=watched.RUN_SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def is_found(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        done = subprocess.run([sapwood(), "mpi", "control"], env=environment, capture_output=True, check=False,
                              timeout=watched.RUN_SECONDS_MAX)
        return done.returncode == 0

    def run_marked(self, marks, end, *options, tree=TREE, **more):
        command = [*LAUNCHERS[self.abi], str(RANKS), test_program(self.abi, "marked"), str(marks), end]
        return Watched(command, *tree, *options, environment={"XDG_RUNTIME_DIR": self.runtime}, **more)

    def run_paced(self, act, *options):
        """Runs a program that works until `act` has done its own."""
        def act_and_end(run):
            paced.wait_for_ranks(run)
            try:
                act(run)
            finally:
                paced.end()

        with Paced(self.abi, RANKS) as paced:
            run = Watched(paced.command, "--quiet", *(options or TREE), while_running=act_and_end,
                          environment={"XDG_RUNTIME_DIR": self.runtime})
        self.assertEqual(run.code, 0, run.errors)
        return run

    @contextlib.contextmanager
    def preloaded(self, **settings):
        """A program that works with the shim alone; what ends it, and its process."""
        with Paced(self.abi, RANKS) as paced, preloaded(self.abi, paced.command, **settings) as (job, mark):
            self.preloaded_mark = mark
            wait_until("ranks that count", paced.has_begun)
            yield paced, job

    def run_attached(self, act, **settings):
        """Attaches to a program that was started with the shim alone and works until `act` has done its own."""
        def act_and_end(run):
            run.job = str(job.pid)
            try:
                run.wait_for("a monitor that is found", self.is_found)
                act(run)
            finally:
                paced.end()

        with self.preloaded(**settings) as (paced, job):
            run = Watched(["attach", str(job.pid)], "--quiet", "--interval", "200ms", while_running=act_and_end,
                          environment={"XDG_RUNTIME_DIR": self.runtime})
            self.assertEqual((run.code, job.wait(watched.RUN_SECONDS_MAX)), (0, 0), run.errors)
        return run

    @contextlib.contextmanager
    def attached_as_well(self, *words):
        """A further watcher, once it can be asked; what it says, in a file, and the name of its network."""
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        said = self.enterContext(tempfile.TemporaryFile("w+", encoding="utf-8"))
        watcher = subprocess.Popen([sapwood(), "mpi", "attach", "--quiet", "--interval", "100ms", *words],
                                   env=environment, stdout=subprocess.DEVNULL, stderr=said)
        name = f"mpi-{watcher.pid}"
        asked = [sapwood(), "mpi", "control", "--network", name, "--json"]

        def has_rounds():
            done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False,
                                  timeout=watched.RUN_SECONDS_MAX)
            return done.returncode == 0 and json.loads(done.stdout)["running"] == EVERYONE
        try:
            wait_until("a second watcher", has_rounds)
            yield said, name
        finally:
            watcher.terminate()
            watcher.wait(watched.RUN_SECONDS_MAX)

    def settings(self, *words):
        """The settings after a change."""
        return json.loads(self.control(*words, "--json"))["settings"]

    def obeyed(self, *words, network=()):
        """The settings after a change, once all ranks obey; the command knows of those that have been reported."""
        def are_all_named():
            found = self.settings(*network)
            return found["obeyed"] == EVERYONE and found
        self.control(*network, *words)
        return wait_until("ranks that obey", are_all_named)

    def last_round(self, run):
        """The last record whose line has come to its end; none before the first."""
        lines = whole_lines(os.path.join(run.out, "rounds.ndjson"))
        return lines[-1] if lines else None

    def calls_in_a_whole_round(self, run, name):
        """A round does not wait for long: one that lacks a rank says so, and is asked for again."""
        def whole():
            self.control("--flush")
            found = self.last_round(run)
            return found and found["covered"] == EVERYONE and found
        found = run.wait_for("a round of all ranks", whole)
        return {event["name"]: event for event in found["events"]}[name]["calls"]

    def calls_that_stay(self, run, name):
        """The same once it does not change: a round that was asked for before may come late."""
        def same():
            one = self.calls_in_a_whole_round(run, name)
            return one == self.calls_in_a_whole_round(run, name) == self.calls_in_a_whole_round(run, name) and one
        return run.wait_for("calls that are not counted any more", same)

    def check_that_rank_1_alone_stays(self, run, name):
        """Ranks switch at different calls: rank 1 has the fewest once the others have gone on for long enough."""
        def rank_1_is_least():
            found = self.calls_in_a_whole_round(run, name)
            return found["min_rank"] == 1 and found
        before = run.wait_for("ranks that count", rank_1_is_least)
        # By more steps than ranks of such a program are apart.
        run.wait_for("more calls", lambda: self.calls_in_a_whole_round(run, name)["max"] > before["max"] + 2)
        after = self.calls_in_a_whole_round(run, name)
        self.assertEqual((after["min"], after["min_rank"]), (before["min"], 1), "rank 1 was not chosen")

    def calls_of_stopped_ranks(self, run, name):
        """What the ranks have counted while none of them goes on, so that all leaves read the same moment."""
        pids = run.processes("paced")
        self.assertEqual(len(pids), RANKS)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            return self.calls_that_stay(run, name)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def ends(self, end, tree):
        """What is said of a run that ends so, and its deaths in order."""
        run = self.run_marked(3, end, "--no-live", tree=tree)
        self.assertNotEqual(run.code, 0)
        said = [line for line in run.errors.splitlines() if re.match("sapwood: ranks? [0-9,-]+ (died first|followed)", line)]
        self.assertEqual([death["is_first"] for death in run.profile["deaths"]], [True] + [False] * (len(said) - 1))
        for line in said:
            self.assertEqual(run.errors.count(line.removeprefix("sapwood: ")), 2, "at once and in the report")
        return said

    def test_the_first_death_is_told_apart_with_its_cause(self):
        # Exit codes and MPI_Abort are the launcher's reason, too; of signals the order of the ends tells the first.
        for end, cause, tree in (("abort", r"MPI_Abort\(13\)", TREE), ("exit", "exit code 7", TREE),
                                 ("kill", r"signal 9 \(killed\)", CHAIN)):
            first, *others = self.ends(end, tree)
            self.assertRegex(first, rf"^sapwood: rank 1 died first, [0-9.]+ s after the start: {cause}")
            self.assertTrue(others, end)
            for line in others:
                self.assertRegex(line, r"^sapwood: ranks? [02,]+ followed: .*inside MPI_Sendrecv on MPI_COMM_WORLD")

    def test_of_deaths_by_signals_that_two_leaves_notice_the_right_one_is_the_first_or_none(self):
        run = self.run_marked(3, "kill", "--no-live")
        self.assertNotEqual(run.code, 0)
        deaths = run.profile["deaths"]
        first = [death["ranks"] for death in deaths if death["is_first"]]
        self.assertIn(first, (["1"], []), run.errors)
        # Ends that near each other have no order.
        said = "rank 1 died first, " if first else ", none is known to be the first: "
        self.assertEqual(run.errors.count(said), 2, "at once and in the report")
        [own] = [death for death in deaths if 1 in members(death["ranks"])]
        self.assertTrue(own["cause"].startswith("signal 9 (killed)"), deaths)

    def test_ranks_that_are_ended_inside_finalize_are_lost_there(self):
        left = LeftRunning(self.runtime, "1", iterations=2)

        def end(run):
            run.wait_for("ranks in MPI_Finalize", left.look)
            # Open MPI's launcher may hang for ever when ranks end while they meet in MPI_Finalize: it ends with them.
            kill(run.processes("marked") + run.processes(LAUNCHERS[self.abi][0]))
        run = self.run_marked(2, "absent", "--no-live", while_running=end)
        self.assertNotEqual(run.code, 0)
        states = run.profile["states"]
        self.assertEqual((states["lost"], states["finalized"]), (EVERYONE, ""), run.errors)
        self.assertNotIn("MPI_Finalize", [event["name"] for event in run.profile["events"]])
        inside = [death for death in run.profile["deaths"] if death["inside"] == "MPI_Finalize"]
        self.assertTrue(inside, run.profile["deaths"])
        self.assertNotIn("after MPI_Finalize", run.errors)
        self.assertNotIn("without MPI_Finalize, inside", run.errors)

    def test_an_exit_code_after_finalize_is_an_end_and_no_death(self):
        run = self.run_marked(2, "code", "--no-live")
        self.assertNotEqual(run.code, 0)
        self.assertRegex(run.errors, r"sapwood: ranks? [0-9] ended first, .*: exit code 3 after MPI_Finalize")
        self.assertNotIn("died first", run.errors)

    def test_a_job_whose_process_group_is_ended_is_told_to_be_ended_by_that_signal(self):
        def end(run):
            paced.wait_for_ranks(run)

            def has_all():
                last = self.last_round(run)
                return last and last["covered"] == EVERYONE
            run.wait_for("a round of all ranks", has_all)
            # As `timeout` does.
            os.kill(run.process.pid, signal.SIGTERM)
            os.killpg(run.process.pid, signal.SIGTERM)

        with Paced(self.abi, RANKS) as paced:
            run = Watched(paced.command, *TREE, "--no-live", while_running=end)
        told = run.profile["told_to_end"]
        self.assertEqual((told["signal"], run.profile["is_final"]), ("SIGTERM", True), run.errors)
        named = [rank for how in ("ended", "otherwise", "running") for rank in members(told[how])]
        self.assertEqual(sorted(named), list(range(RANKS)), told)
        self.assertRegex(run.report,
                         r"(?m)^ended +by SIGTERM, which was received [0-9.]+ s after the start\n +ranks? [0-9,-]+ ")
        # None is said to be the reason of the others, and what was counted is there.
        self.assertNotIn("died first", run.errors)
        self.assertNotIn(True, [death["is_first"] for death in run.profile["deaths"]])
        self.assertEqual(run.profile["covered"], EVERYONE, run.errors)
        [calls] = [event["calls"] for event in run.profile["events"] if event["name"] == "MPI_Allreduce"]
        self.assertGreater(calls["min"], 0)

    def test_a_program_that_ends_in_order_has_no_deaths(self):
        run = self.run_marked(2, "finalize", "--no-live")
        self.assertEqual(run.code, 0, run.errors)
        self.assertNotIn("died", run.errors)

    def test_an_iteration_holds_that_iteration_of_every_rank(self):
        run = self.run_marked(6, "finalize", "--quiet")
        self.assertEqual(run.code, 0, run.errors)
        marked = {record["iteration"]: record for record in run.rounds if record["iteration"] is not None}
        self.assertEqual(sorted(marked), [1, 2, 3, 4, 5, 6])
        for mark, record in marked.items():
            self.assertEqual(record["covered"], EVERYONE)
            events = {event["name"]: event["calls"] for event in record["events"]}
            # 1 + 2 + ... + k barriers, on each rank.
            for name, calls in (("MPI_Barrier", mark * (mark + 1) // 2), ("iteration", mark)):
                self.assertEqual((events[name]["min"], events[name]["max"]), (calls, calls), f"{name} at {mark}")

    def test_every_nth_call_is_an_iteration(self):
        def act(run):
            run.wait_for("iterations", lambda: json.loads(self.control("--json"))["iterations"] >= 3)
        run = self.run_paced(act, *TREE, "--every", "5:MPI_Bcast")
        found = [record for record in run.rounds if record["iteration"] is not None]
        self.assertGreaterEqual(len(found), 3)
        for record in found:
            [calls] = [event["calls"] for event in record["events"] if event["name"] == "MPI_Bcast"]
            self.assertEqual((calls["min"], calls["max"]), (5 * record["iteration"],) * 2)

    def test_ranks_obey_and_say_so(self):
        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            self.obeyed("--groups", "point-to-point")
            first, again = self.calls_that_stay(run, "MPI_Bcast"), self.calls_in_a_whole_round(run, "MPI_Bcast")
            self.assertEqual(again, first, "collectives are not counted any more")
            self.obeyed("--groups", "all", "--ranks", "0,2")
            self.check_that_rank_1_alone_stays(run, "MPI_Bcast")
            self.obeyed("--ranks", "all", "--interval", "0")
            self.assertIn("no periodic rounds", self.control())
            self.assertRegex(self.control("--groups", "speed", code=2), "^sapwood: no group is called 'speed'")
        run = self.run_paced(act)
        self.assertEqual(run.rounds[-1]["settings"]["obeyed"], EVERYONE)

    def test_ranks_are_known_to_obey_before_the_next_round(self):
        def act(run):
            # The first round would come after an hour: only those come that are asked for.
            run.wait_for("ranks", lambda: json.loads(self.control("--flush", "--json"))["running"] == EVERYONE)
            before = json.loads(self.control("--json"))["rounds"]
            for change, words in enumerate((("--groups", "point-to-point"), ("--ranks", "0,2")), start=1):
                told = json.loads(self.control(*words, "--json"))
                self.assertEqual((told["settings"]["change"], told["settings"]["obeyed"]), (change, EVERYONE))
                self.assertEqual(told["rounds"], before)
        self.run_paced(act, "--ranks-per-leaf", "2", "--topology", "2x1", "--interval", "1h")

    def test_ranks_of_a_job_that_is_attached_to_obey_as_those_of_one_that_is_started(self):
        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            told = self.settings()
            self.assertEqual((told["change"], told["tracing"]), (0, False), "nothing was changed yet")
            # Before ranks are paused, which lose the order of their calls by that.
            self.assertTrue(self.obeyed("--tracing", "on")["tracing"])

            def waits():
                last = self.last_round(run)
                return last and last["waits"] and last["waits"]["collectives"] > 5
            run.wait_for("calls that are recorded", waits)
            self.assertFalse(self.settings("--tracing", "off")["tracing"])
            self.assertEqual(self.obeyed("--groups", "point-to-point")["groups"][0], "point-to-point")
            first, again = self.calls_that_stay(run, "MPI_Bcast"), self.calls_in_a_whole_round(run, "MPI_Bcast")
            self.assertEqual(again, first, "collectives are not counted any more")
            self.obeyed("--groups", "all", "--ranks", "0,2")
            self.check_that_rank_1_alone_stays(run, "MPI_Bcast")
            self.assertEqual(self.settings("--sampling", "500ms")["sampling_s"], 0.5)
            self.control("--ranks", "all", "--interval", "0")
            self.assertIn("no periodic rounds", self.control())
            self.assertEqual(self.control("--ranks", "9", code=2),
                             f"sapwood: the program has no rank 9; its ranks are 0-{RANKS - 1}\n")
        run = self.run_attached(act)
        self.assertEqual(run.profile["settings"]["change"], 6)
        self.assertEqual(run.profile["states"]["finalized"], EVERYONE, run.errors)

    def marks(self):
        """Of each rank of the preloaded program: marks that it has reached, and those without a snapshot."""
        found = []
        for pid, _ in marked(self.preloaded_mark):
            # A process may end, or open and close files, meanwhile.
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):
                    path = f"/proc/{pid}/fd/{name}"
                    if os.readlink(path).startswith("/memfd:sapwood-profile"):
                        with open(path, "rb") as table:
                            words = table.read(408)[392:]
                        found.append([int.from_bytes(words[at:at + 8], "little") for at in (0, 8)])
        return found

    def test_iterations_of_a_job_that_is_attached_to_begin_with_the_next_mark_of_all(self):
        def act(run):
            try:
                run.wait_for("a monitor that is found", self.is_found)
                run.wait_for("iterations", lambda: json.loads(self.control("--json"))["iterations"] >= 3)
                told.append(json.loads(self.control("--json")))
            finally:
                paced.end()

        def are_left_out():
            found = self.marks()
            return len(found) == RANKS and all(left_out > 0 for _, left_out in found) and found

        told = []
        # Every 20th MPI_Bcast; more than four marks pass before a leaf is there.
        with self.preloaded(SAPWOOD_MPI_EVERY="20:38") as (paced, job):
            before = max(marks for marks, _ in wait_until("marks that are left out", are_left_out))
            run = Watched(["attach", str(job.pid)], "--quiet", "--interval", "200ms", while_running=act,
                          environment={"XDG_RUNTIME_DIR": self.runtime})
            self.assertEqual((run.code, job.wait(watched.RUN_SECONDS_MAX)), (0, 0), run.errors)
        self.assertEqual(told[0]["marks_left_out"], 0, "those before are not counted")
        found = [record for record in run.rounds if record["iteration"] is not None]
        self.assertGreaterEqual(len(found), 3)
        self.assertGreater(found[0]["iteration"], before)
        for record in found:
            self.assertEqual(record["covered"], EVERYONE)
            [calls] = [event["calls"] for event in record["events"] if event["name"] == "MPI_Bcast"]
            self.assertEqual((calls["min"], calls["max"]), (20 * record["iteration"],) * 2)

    def test_a_function_that_is_none_marks_no_iteration_and_that_is_said_once(self):
        command = [*LAUNCHERS[self.abi], str(RANKS), test_program(self.abi, "marked"), "2", "finalize"]
        environment = {"XDG_RUNTIME_DIR": self.runtime, "SAPWOOD_MPI_EVERY": "100:MPI_Dance"}
        run = Watched(command, *TREE, "--no-live", environment=environment)
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual(run.errors.count("sapwood: SAPWOOD_MPI_EVERY is '100:MPI_Dance', not N:ID "), 1, run.errors)

    def test_one_of_two_that_are_attached_controls_and_the_other_goes_on_with_its_settings(self):
        def act(run):
            first = f"mpi-{run.process.pid}"
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            self.control("--groups", "calls")
            with self.attached_as_well(run.job) as (_, second):
                refused = self.control("--network", second, "--groups", "all", code=2)
                self.assertEqual(refused, "sapwood: groups, ranks, tracing and sampling cannot be changed: another 'sapwood "
                                          "mpi attach' controls this job; name that one by --network\n")
                # Rounds are each watcher's own.
                self.assertEqual(self.settings("--network", second, "--interval", "50ms", "--flush")["interval_s"], 0.05)
                self.assertEqual(self.settings("--network", first)["interval_s"], 0.2)
                run.process.send_signal(signal.SIGINT)
                wait_until("the end of the first", lambda: run.process.poll() is not None)
                told = wait_until("settings of the first", lambda: (found := self.settings("--network", second))["change"] and found)
                self.assertEqual((told["change"], "bytes" in told["groups"]), (1, False))
                told = self.obeyed("--groups", "all", network=("--network", second))
                self.assertEqual(told["change"], 2)
        self.run_attached(act)

    def test_ranks_that_were_left_out_are_named_by_the_next_watcher_which_has_them_count_again(self):
        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            self.obeyed("--ranks", "0")
            with self.attached_as_well(run.job) as (said, second):
                run.process.send_signal(signal.SIGINT)
                wait_until("the end of the first", lambda: run.process.poll() is not None)
                network = ("--network", second)
                wait_until("settings of the first", lambda: self.settings(*network)["change"] == 1)
                told = self.obeyed("--ranks", "all", network=network)
                self.assertEqual((told["change"], told["ranks"]), (2, "all"))
                said.seek(0)
                self.assertIn(f"sapwood: calls of ranks 1-{RANKS - 1} are not counted, as 'sapwood mpi control --ranks' has "
                              "left them out; 'sapwood mpi control --ranks all' has all ranks count again\n", said.read())
        self.run_attached(act)

    def test_a_job_that_keeps_its_counts_in_a_folder_is_not_attached_to_and_the_folder_is_named(self):
        with self.preloaded(SAPWOOD_MPI_EVENTS_DIR=self.runtime) as (paced, job):
            done = subprocess.run([sapwood(), "mpi", "attach", str(job.pid)], capture_output=True, text=True, check=False,
                                  timeout=watched.RUN_SECONDS_MAX)
            paced.end()
            self.assertEqual(job.wait(watched.RUN_SECONDS_MAX), 0)
        self.assertEqual(done.returncode, 2, done.stderr)
        folder = os.path.realpath(self.runtime)
        self.assertRegex(done.stderr, "^sapwood: process [0-9]+ was started with SAPWOOD_MPI_EVENTS_DIR, and so keeps its "
                         f"counts and calls in '{folder}', .*'sapwood trace why --from {folder}' reads the calls")

    def test_ranks_without_a_control_page_are_named_and_the_rest_of_control_works(self):
        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            for order in (("--groups", "calls"), ("--ranks", "0"), ("--tracing", "on"), ("--sampling", "1s")):
                self.assertRegex(self.control(*order, code=2),
                                 "^sapwood: groups, ranks, tracing and sampling cannot be changed: the shim of ranks "
                                 f"0-{RANKS - 1} has left no control page: .*\n$")
            self.assertEqual(self.settings("--interval", "100ms", "--flush")["interval_s"], 0.1)
        self.run_attached(act, SAPWOOD_MPI_TRANSPORT="files", SAPWOOD_MPI_TRANSPORT_DIR=self.runtime)

    def test_who_attaches_to_a_run_of_sapwood_mpi_does_not_control_it(self):
        def act(run):
            with self.attached_as_well("--pid", str(run.processes("paced")[0])) as (_, second):
                self.assertRegex(self.control("--network", second, "--groups", "calls", code=2),
                                 f"cannot be changed: only the 'sapwood mpi' that started ranks 0-{RANKS - 1} can")
                self.control("--network", f"mpi-{run.process.pid}", "--groups", "calls")
        self.run_paced(act)

    def test_orders_that_cannot_be_obeyed_are_refused_by_the_page_and_the_command(self):
        def post(address, order):
            request = urllib.request.Request(address + "api/control", order.encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=watched.RUN_SECONDS_MAX) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            # It was written before the program began.
            address = re.search(r"http://\S+/", run.process.stderr.readline())[0]
            for order, reason in (('{"interval_s":-3}', "no interval"), ('{"interval_s":1e308}', "no interval"),
                                  ('{"sampling_s":-3}', "no interval"), ('{"groups":["foo"]}', "no group is called 'foo'"),
                                  ('{"ranks":"abc"}', "no set of ranks"), ('{"ranks":"0-99999999999"}', "no set of ranks"),
                                  ('{"ranks":"9"}', "no rank 9"), ("[]", "no control request")):
                code, text = post(address, order)
                self.assertEqual((code, reason in text), (422, True), f"{order}: {code} {text}")
            self.assertEqual(json.loads(self.control("--json"))["settings"]["change"], 0, "nothing was changed")
            self.assertEqual(self.control("--ranks", "9", code=2),
                             f"sapwood: the program has no rank 9; its ranks are 0-{RANKS - 1}\n")
            self.assertEqual(post(address, '{"tracing":true,"sampling_s":0.5,"groups":["collective","time"]}')[0], 202)
            told = json.loads(self.control("--json"))["settings"]
            self.assertEqual((told["tracing"], told["sampling_s"]), (True, 0.5))
            self.assertRegex(self.control(), r"tracing    on\nsampling   every 0.5 s\n")
        run = self.run_paced(act, *TREE, "--page")
        self.assertEqual(run.profile["settings"]["change"], 1)
        self.assertEqual(run.profile["settings"]["groups"], ["collective", "time"])
        self.assertEqual(run.profile["settings"]["obeyed"], EVERYONE)

    def test_a_histogram_of_an_event_that_never_appears_is_named(self):
        run = self.run_marked(2, "finalize", "--quiet", "--histogram", "bogus", "--histogram", "MPI_Barrier")
        self.assertEqual(run.code, 0, run.errors)
        named = re.findall("--histogram (.*): no event of this name was counted", run.errors)
        self.assertEqual(named, ["bogus"])

    def assert_stopped_rank_is_named(self, run):
        """A rank is stopped, and a change names ranks as late. Until leaves have reported theirs it names none, and
        is made again."""
        def named():
            said = self.control("--groups", "calls", "--timeout", "10s", code=125)
            return said.startswith("sapwood: rank") and said
        pids = run.processes("paced")
        os.kill(pids[0], signal.SIGSTOP)
        try:
            said = wait_until("ranks that are named", named)
        finally:
            os.kill(pids[0], signal.SIGCONT)
        self.assertRegex(said, "^sapwood: ranks? [0-9,-]+ (have|has) not applied the change yet: (they make|it makes) no MPI call")

    def test_a_rank_that_is_stopped_does_not_obey_and_is_named(self):
        def act(run):
            run.wait_for("ranks", lambda: json.loads(self.control("--json"))["running"] == EVERYONE)
            self.assert_stopped_rank_is_named(run)
            self.control("--flush")
        self.run_paced(act)

    def test_ranks_that_no_round_has_shown_are_named_and_waited_for(self):
        def act(run):
            # The first round would come after an hour.
            self.assert_stopped_rank_is_named(run)
            wait_until("ranks that obey", lambda: self.settings()["obeyed"] == EVERYONE)
            self.assertEqual(json.loads(self.control("--json"))["late"], "")
        self.run_paced(act, "--ranks-per-leaf", "2", "--topology", "2x1", "--interval", "1h")

    def test_whole_rounds_and_changes_are_the_same(self):
        """Processes of the tree die while rounds travel as changes; what comes is exact."""
        def act(run):
            run.wait_for("rounds", lambda: json.loads(self.control("--json"))["rounds"] > 8)
            stopped.append(self.calls_of_stopped_ranks(run, "MPI_Allreduce"))
            os.kill(run.processes("sapwood-node", "node")[0], signal.SIGKILL)
            before = json.loads(self.control("--json"))["rounds"]
            run.wait_for("rounds again", lambda: json.loads(self.control("--json"))["rounds"] > before + 8)
            stopped.append(self.calls_of_stopped_ranks(run, "MPI_Allreduce"))
        stopped = []
        run = self.run_paced(act, "--topology", "2x1", "--interval", "50ms")
        self.assertEqual((run.profile["ranks_covered"], run.profile["missing"]), (RANKS, []))
        # Every rank takes part in each step: at one moment they are at most one step apart.
        for calls in stopped:
            self.assertLessEqual(calls["max"] - calls["min"], 1)
        last, members = [0, 0, 0], ("min", "max", "sum")
        for record in run.rounds:
            for event in record["events"]:
                # Leaves read at moments of their own, and each rank counts up.
                if event["name"] == "MPI_Allreduce" and event["ranks"] == RANKS:
                    calls = [event["calls"][member] for member in members]
                    self.assertEqual([max(pair) for pair in zip(calls, last)], calls, f"{last} before")
                    last = calls
        self.assertEqual(last[0], last[1], "at the end all have taken the same steps")
        self.assertGreater(last[0], 0, "no record had all ranks")
        self.assertEqual(run.rounds[-1]["covered"], EVERYONE)

    def test_a_program_balances_itself_by_advice(self):
        command = [*LAUNCHERS[self.abi], str(RANKS), test_program(self.abi, "balance"), "120"]
        run = Watched(command, "--quiet", "--interval", "200ms")
        self.assertEqual(run.code, 0, run.errors)
        first, last, corrections = map(float, re.search(
            r"per iteration: ([0-9.]+) ms at first, ([0-9.]+) ms at the end; ([0-9]+) corrections", run.output).groups())
        self.assertGreater(corrections, 0)
        print(f"{self.abi}: {first} ms for an iteration before, {last} ms after {corrections:.0f} corrections by advice")


class OpenMpi(Control, unittest.TestCase):
    abi = "openmpi"


class Mpich(Control, unittest.TestCase):
    abi = "mpich"

    # Under one MPI is enough where only the tree matters.
    test_whole_rounds_and_changes_are_the_same = None
    test_a_rank_that_is_stopped_does_not_obey_and_is_named = None
    test_ranks_that_no_round_has_shown_are_named_and_waited_for = None


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

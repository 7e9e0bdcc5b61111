"""Freezes programs that hang or wait with `sapwood trace freeze`, and reads what it leaves.

A program that hangs (tests/culprits/early_break) is frozen when it is stuck, and one that waits (slow_rank)
when it is told to end, or when a user asks the `sapwood mpi` that watches it. Each call must be there once,
in the right order, with the ranks for which others wait.

Needs the environment that watched.py names; `make truth` sets it.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import turns
import watched
from recorded import RecordedRun
from watched import LAUNCHERS, OneMpi, Watched, sapwood, test_program, words_until
from why import expected_of

KINDS = ("json", "perfetto", "parquet", "svg")
# Collectives that are made before a program is ended.
ROUNDS_MIN = 10


class FreezeRun(RecordedRun):
    """A run of `sapwood trace freeze`: `freeze` is its JSON object, `outputs` the bytes of the others."""

    def execute(self, words, environment, while_running):
        dashes = words.index("--")
        files = [word for kind in KINDS for word in (f"--{kind}", self.file(kind))]
        words = [sapwood(), "trace", "freeze", *words[2:dashes], *files, *words[dashes:]]
        super().execute(words, environment, while_running)
        self.freeze, self.outputs = None, {}
        with contextlib.suppress(FileNotFoundError):
            for kind in KINDS:
                with open(self.file(kind), "rb") as file:
                    self.outputs[kind] = file.read()
            self.freeze = json.loads(self.outputs["json"])

    def file(self, kind):
        return os.path.join(self.folder, f"frozen.{kind}")


def asked(run, *options):
    """A freeze of a job that runs, when it has ended."""
    words = [sapwood(), "trace", "freeze", "--job", f"mpi-{run.process.pid}", *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX, check=False)


def has_rounds(run):
    """Whether a job that runs has made some collectives."""
    done = asked(run, "--json", "-")
    return done.returncode == 0 and len(json.loads(done.stdout)["collectives"]) > ROUNDS_MIN


class FreezeTruth(OneMpi):
    """The cases, for one MPI; a subclass names it."""

    def command(self, case):
        program = test_program(self.abi, os.path.join("culprits", case))
        return [*LAUNCHERS[self.abi], str(expected_of(case)["ranks"]), program]

    def place(self, freeze, function, communicator):
        names = [one["name"] for one in freeze["communicators"]]
        key = (function, names.index(communicator))
        [place] = [one for one in freeze["places"] if (one["function"], one["communicator"]) == key]
        return place

    def check_order(self, freeze):
        """Calls of a thread come one after the other, and each collective of a rank once."""
        ends, seen = {}, set()
        for event in freeze["events"]:
            thread = (event["rank"], event["thread"])
            self.assertGreaterEqual(event["end_ns"], event["begin_ns"])
            # Ticks were rounded to nanoseconds, and a call in progress is timed by another clock.
            slack = 10**6 if event["is_open"] else 2
            self.assertGreaterEqual(event["begin_ns"] + slack, ends.get(thread, 0), event)
            ends[thread] = event["end_ns"]
            if event["kind"] == "collective":
                key = (event["rank"], event["communicator"], event["sequence"])
                self.assertNotIn(key, seen)
                seen.add(key)

    def check_files(self, run):
        self.assertEqual(run.outputs["parquet"][:4] + run.outputs["parquet"][-4:], b"PAR1PAR1")
        picture = run.outputs["svg"].decode()
        self.assertTrue(xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
        for words in ("Time line", "Order of arrival", "rank 0", run.freeze["program"]):
            self.assertIn(words, picture)
        self.assertIn(b"MPI_Allreduce", run.outputs["perfetto"])

    def test_a_program_that_is_stuck_is_frozen_then(self):
        def act(run):
            words_until(run, "written: ")
            self.assertIsNone(run.process.poll(), "the program goes on")
            run.process.send_signal(signal.SIGINT)

        # It is frozen once: with this deadline not before all ranks have begun.
        run = FreezeRun(self.command("early_break"), "--last", "60s", "--deadline", "10s", out=False, while_running=act)
        freeze = run.freeze
        self.assertEqual((freeze["reason"], freeze["ranks"]), ("stuck", 5), run.errors)
        self.assertIn("rank 3 has not entered MPI_Allreduce number 40 on high", freeze["statement"])
        self.assertEqual(freeze["unknown"], [])
        self.check_order(freeze)
        self.check_files(run)
        place = self.place(freeze, "MPI_Allreduce", "high")
        self.assertEqual((place["instances"], place["whole"], place["open"], place["absent"]), (40, 39, 2, "3"))
        # Between hosts the clocks may not say which rank came last.
        self.assertEqual(sum(one["times"] for one in place["last"]) + place["undecided"], 39)
        self.assertTrue(watched.ON_HOSTS or place["undecided"] == 0, place)
        place = self.place(freeze, "MPI_Barrier", "MPI_COMM_WORLD")
        self.assertEqual((place["ranks"], place["open"], place["absent"]), ("0-1,3", 3, "2,4"))
        open_calls = {event["rank"]: event for event in freeze["events"] if event["is_open"]}
        self.assertEqual(set(open_calls), set(range(5)))
        for event in open_calls.values():
            self.assertEqual(event["wait_ns"], event["end_ns"] - event["begin_ns"])
        self.assertIn("waits for ranks 2,4", run.outputs["perfetto"].decode(errors="replace"))

    def check_slow(self, freeze):
        self.check_order(freeze)
        place = self.place(freeze, "MPI_Allreduce", "MPI_COMM_WORLD")
        self.assertGreaterEqual(place["whole"], ROUNDS_MIN)
        last = place["last"][0]
        self.assertEqual(last["rank"], 1, place)
        self.assertGreater(last["times"], place["whole"] / 2)
        for one in freeze["collectives"]:
            begins = [freeze["events"][at]["begin_ns"] for at in one["arrivals"]]
            self.assertEqual(begins, sorted(begins))
            if one["last"] is not None:
                self.assertEqual(one["spread_ns"], begins[-1] - begins[0])
                self.assertEqual(one["last"], one["arrivals"][-1])
            self.check_passage(freeze, one)

    def check_passage(self, freeze, one):
        """When each rank came and left, beside the last arrival, from the times of the calls."""
        calls = [freeze["events"][at] for at in one["arrivals"]]
        if len(calls) < one["size"] or any(call["is_open"] for call in calls):
            self.assertEqual((one["arrival_waits_ns"], one["departures"], one["elapsed_ns"]), ([], [], None), one)
            return
        last = max(call["begin_ns"] for call in calls)
        ends = sorted(call["end_ns"] for call in calls)
        left = [freeze["events"][departure["event"]]["end_ns"] for departure in one["departures"]]
        self.assertEqual(left, ends, one)
        self.assertEqual({departure["event"] for departure in one["departures"]}, set(one["arrivals"]), one)
        clocks = {freeze["processes"][call["rank"]]["clock"] for call in calls}
        if len(clocks) > 1:
            return
        self.assertEqual(one["arrival_waits_ns"], [last - call["begin_ns"] for call in calls], one)
        told = [(departure["place"], departure["wait_ns"]) for departure in one["departures"]]
        self.assertEqual(told, [(ends.index(end), end - last) for end in left], one)
        self.assertEqual(one["elapsed_ns"], ends[-1] - min(call["begin_ns"] for call in calls), one)

    @turns.alone(turns.LATENESS)
    def test_a_program_that_waits_is_frozen_on_request(self):
        found = []

        def frozen(run):
            done = asked(run, "--json", "-")
            freeze = json.loads(done.stdout) if done.returncode == 0 else {"collectives": []}
            whole = [one for one in freeze["collectives"] if one["last"] is not None]
            return freeze if len(whole) >= ROUNDS_MIN else None

        def act(run):
            found.append(run.wait_for("collectives", lambda: frozen(run)))
            # A freeze takes nothing from the next one.
            found.append(frozen(run))
            found.append(asked(run, "--ranks", "1-2", "--json", "-"))
            found.append(asked(run))
            found.append(asked(run, "--ranks", "9"))
            run.process.send_signal(signal.SIGTERM)

        Watched(self.command("slow_rank"), "--quiet", "--waits", "--interval", "200ms", out=False, while_running=act)
        first, second, some, table, wrong = found
        self.check_slow(first)
        self.check_slow(second)
        self.assertEqual((first["reason"], first["unknown"]), ("asked", []))
        first_events = {(event["rank"], event["sequence"]) for event in first["events"] if not event["is_open"]}
        second_events = {(event["rank"], event["sequence"]) for event in second["events"]}
        self.assertLessEqual(first_events, second_events)
        self.assertEqual([one["rank"] for one in json.loads(some.stdout)["processes"]], [1, 2], some.stderr)
        self.assertIn("rank 1 (", table.stdout)
        self.assertIn("dropped: no call of the window was overwritten", table.stdout)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("the program has no rank 9; its ranks are 0-3", wrong.stderr)

    def test_of_a_program_that_does_not_record_who_has_left_a_collective_is_not_missed(self):
        found = []

        def has_left(run):
            done = asked(run, "--json", "-")
            freeze = json.loads(done.stdout) if done.returncode == 0 else {"processes": [], "collectives": []}
            states = {one["rank"]: one["state"] for one in freeze["processes"]}
            waited = [one for one in freeze["collectives"] if one["function"] == "MPI_Reduce"]
            return waited if states.get(2) == states.get(3) == "finalizing" and waited else None

        def act(run):
            found.append(run.wait_for("ranks in MPI_Finalize", lambda: has_left(run)))
            run.process.send_signal(signal.SIGTERM)

        with tempfile.TemporaryDirectory() as folder:
            program = [test_program(self.abi, "still"), "reduce", os.path.join(folder, "stop")]
            Watched([*LAUNCHERS[self.abi], "4", *program], "--quiet", out=False, while_running=act)
        [[one]] = found
        self.assertEqual((one["sequence"], one["absent"], len(one["arrivals"])), (1, "1", 1), one)

    def test_a_rank_that_comes_late_is_a_trigger(self):
        def act(run):
            words_until(run, "written: ")
            run.process.send_signal(signal.SIGINT)

        run = FreezeRun(self.command("late_checkpoint"), "--late", "300ms", out=False, while_running=act)
        freeze = run.freeze
        self.assertEqual(freeze["reason"], "outlier", run.errors)
        told = re.fullmatch(r"rank (\d+) arrived .* late at MPI_Allreduce number (\d+)( on MPI_COMM_WORLD)?", freeze["statement"])
        self.assertIsNotNone(told, freeze["statement"])
        [one] = [one for one in freeze["collectives"] if one["sequence"] == int(told[2])]
        self.assertEqual(freeze["events"][one["last"]]["rank"], int(told[1]))
        self.assertGreater(one["spread_ns"], 300 * 10**6)

    @turns.alone(turns.LATENESS)
    def test_a_program_that_is_told_to_end_is_frozen_before(self):
        def act(run):
            run.wait_for("collectives", lambda: has_rounds(run))
            run.process.send_signal(signal.SIGINT)

        run = FreezeRun(self.command("slow_rank"), out=False, while_running=act)
        self.assertEqual(run.freeze["reason"], "signal", run.errors)
        self.check_slow(run.freeze)
        self.check_files(run)

    def test_amounts_that_differ_are_told_as_wrong(self):
        run = FreezeRun(self.command("unequal_amounts"), "--last", "60s", out=False)
        self.assertEqual((run.code, run.freeze["reason"], run.freeze["mixed"]), (0, "end", []), run.errors)
        [one] = run.freeze["amounts"]
        self.assertEqual([one["culprit"]], expected_of("unequal_amounts")["culprits"], one)
        most = {"bytes": 80, "count": 3, "lowest": 0}
        self.assertEqual(one["amounts"], [{"bytes": 72, "count": 1, "lowest": 3}, most])
        text = " ".join(line.removeprefix("sapwood:").strip() for line in run.errors.splitlines())
        self.assertIn(f"wrong: {one['text']}", text)

    def test_a_ring_that_is_full_says_what_it_has_lost(self):
        command = [*LAUNCHERS[self.abi], "2", test_program(self.abi, "solver")]
        run = FreezeRun(command, "--last", "600s", out=False, environment={"SAPWOOD_MPI_RING_BYTES": "4096"})
        self.assertEqual((run.code, run.freeze["reason"]), (0, "end"), run.errors)
        dropped = [one["dropped"] for process in run.freeze["processes"] for one in process["threads"]]
        self.assertTrue(dropped and all(count > 0 for count in dropped), run.freeze["processes"])
        said = f"{sum(dropped):,} calls overwritten"
        self.assertIn(said, "\n".join(run.freeze["unknown"]))
        for kind in ("svg", "perfetto", "parquet"):
            self.assertIn(said.encode(), run.outputs[kind], kind)


class OpenMpi(FreezeTruth, unittest.TestCase):
    abi = "openmpi"


class Mpich(FreezeTruth, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

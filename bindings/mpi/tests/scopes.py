"""Gathers scopes with `sapwood trace scope`, and compares their figures with what each rank wrote by itself.

Every rank writes its events to disk. From these the same selections and reductions are computed here,
without any of Sapwood's code: numbers of events must be equal, times to what the calibrations of two
ranks' clocks differ by. At fan-out 1, 2 and 8.

Needs the environment that watched.py names; `make truth` sets it.
"""

import json
import os
import statistics
import subprocess
import unittest
from collections import defaultdict

import turns
import watched
from paced import Paced
from rank_events import COLLECTIVE, SEND
from recorded import RecordedRun
from truth import TREES
from watched import LAUNCHERS, SYSTEM_PYTHON, OneMpi, Watched, sapwood, test_program

KINDS = {1: "collective", 2: "collective_started", 3: "collective_completed", 4: "send", 5: "send_started",
         6: "receive", 7: "receive_completed"}
# What a scope has no bytes for is folded, and how many bytes the groups take depends on how far the times spread.
BYTES = "100MB"
SCOPES = f"""
[[scope]]
name = "all"
by = ["rank", "function", "kind"]
every = "100ms"
bytes = "{BYTES}"

[[scope]]
name = "some"
functions = "MPI_All*"
ranks = "1-2"
longer = "2ms"
by = "rank"
every = "150ms"
bytes = "{BYTES}"

[[scope]]
name = "gaps"
value = "gap"
by = "rank"
every = "end"
bytes = "{BYTES}"

[[scope]]
name = "last"
kinds = ["collective", "send"]
window = 5
by = "rank"
every = "end"
bytes = "{BYTES}"

[[scope]]
name = "communicators"
kinds = "collective"
communicators = ["MPI_COMM_WORLD"]
by = "communicator"
every = "end"
bytes = "{BYTES}"
"""
# As in waits.py, and a median is known within 1/32.
CALIBRATION = 1e-3
BIN = 1 / 32


# How often a gathering within its share is made at most until one has used no more processor time than it may.
GATHERINGS_MAX = 5
# Quick calls of each rank, less than a ring has room for, and a program that makes them and goes on when it is told to.
CALLS = 20_000
MADE = f"""
import os, time
from mpi4py import MPI
for _ in range({CALLS}):
    MPI.COMM_WORLD.Barrier()
open(f"made.{{MPI.COMM_WORLD.rank}}", "x").close()
while not os.path.exists("go-on"):
    time.sleep(0.01)
"""


class ScopeRun(RecordedRun):
    """A run of `sapwood trace scope`: `records` are its lines."""

    def __init__(self, abi, ranks, case, *options, scopes=SCOPES, environment=None):
        self.scopes = scopes
        super().__init__([*LAUNCHERS[abi], str(ranks), test_program(abi, "waits"), case, "notes"], *options, out=False,
                         environment=environment)

    def execute(self, words, environment, while_running):
        dashes = words.index("--")
        document, lines = (os.path.join(self.folder, name) for name in ("scopes.toml", "scopes.ndjson"))
        with open(document, "w", encoding="utf-8") as file:
            file.write(self.scopes)
        words = [sapwood(), "trace", "scope", "--file", document, "--ndjson", lines, *words[2:dashes], *words[dashes:]]
        super().execute(words, environment, while_running)
        with open(lines, encoding="utf-8") as file:
            self.records = [json.loads(line) for line in file]

    def of(self, scope):
        return [record for record in self.records if record["scope"] == scope]

    def groups(self, scope, *keys):
        """Of all records of a scope: by these keys the events and their sum."""
        found = defaultdict(lambda: [0, 0])
        for record in self.of(scope):
            for group in record["groups"]:
                entry = found[tuple(group[key] for key in keys)]
                entry[0] += group["count"]
                entry[1] += group["sum_ns"]
        return dict(found)

    def calls(self, rank, selects):
        """The calls of a rank of which an event is selected: with their spans and gaps in nanoseconds."""
        file, found = self.files[rank], []
        begin = end = before = None
        for event in file.events:
            if event.time != begin:
                begin, before, end, is_selected = event.time, end, event.time + event.span, False
            span = event.span * file.scale >> 32
            if not is_selected and selects(event, span):
                is_selected = True
                gap = None if before is None else max(0, event.time - before) * file.scale >> 32
                found.append((event, span, gap))
        return found


class ScopeTruth(OneMpi):
    """The comparison, for one MPI."""

    ranks = 4
    trees = TREES

    def check_sums(self, came, expected):
        self.assertEqual({key: count for key, (count, _) in came.items()},
                         {key: len(values) for key, values in expected.items() if values})
        for key, (count, sum_ns) in came.items():
            wanted = sum(expected[key])
            self.assertLessEqual(abs(sum_ns - wanted), wanted * CALIBRATION + 2 * count, key)

    def check(self, run):
        for record in run.records:
            losses = [record[key] for key in ("events_dropped", "groups_folded", "silent_ranks", "missing_leaves")]
            self.assertEqual(losses, [0] * 4, record)
        total = sum(len(file.events) for file in run.files.values())
        self.assertEqual(sum(record["events_read"] for record in run.of("all")), total)
        expected = defaultdict(list)
        for rank in run.files:
            for event, span, _ in run.calls(rank, lambda event, span: True):
                expected[(rank, event.function, KINDS[event.kind])].append(span)
        self.check_sums(run.groups("all", "rank", "function", "kind"), expected)
        some = {(rank,): [span for _, span, _ in run.calls(rank, lambda event, span: span >= 2_000_000 and
                          event.function.startswith("MPI_All"))] for rank in (1, 2) if rank in run.files}
        self.check_near_limit(run, some)
        gaps = {(rank,): [gap for _, _, gap in run.calls(rank, lambda event, span: True) if gap is not None]
                for rank in run.files}
        self.check_sums(run.groups("gaps", "rank"), gaps)
        self.check_last(run)

    def check_near_limit(self, run, some):
        """An event that lasted about as long as the limit may be on either side."""
        came = run.groups("some", "rank")
        self.assertLessEqual(set(came), set(some))
        for key, values in some.items():
            self.assertLessEqual(abs(came.get(key, (0, 0))[0] - len(values)), 1, key)

    def check_last(self, run):
        [record] = run.of("last")
        def wanted(rank):
            return run.calls(rank, lambda event, span: event.kind in (COLLECTIVE, SEND))

        self.assertEqual({group["rank"] for group in record["groups"]}, {rank for rank in run.files if wanted(rank)})
        for group in record["groups"]:
            spans = [span for _, span, _ in wanted(group["rank"])][-5:]
            self.assertEqual(group["count"], len(spans))
            near = lambda came, expected: self.assertLessEqual(abs(came - expected), expected * CALIBRATION + 2, group)
            near(group["min_ns"], min(spans))
            near(group["max_ns"], max(spans))
            near(group["mean_ns"], statistics.mean(spans))
            deviation = statistics.pstdev(spans)
            # A difference of large squares.
            self.assertLessEqual(abs(group["deviation_ns"] - deviation), deviation * 0.01 + 1e-6 * max(spans) + 2)
            median = statistics.median_low(spans)
            self.assertLessEqual(abs(group["median_ns"] - median), median * (BIN + CALIBRATION) + 2, (group, spans))

    def test_figures_of_collectives_and_messages(self):
        for fan_out, tree in self.trees.items():
            for case in ("collectives", "messages"):
                with self.subTest(case=case, fan_out=fan_out):
                    run = ScopeRun(self.abi, self.ranks, case, *tree)
                    self.assertEqual((run.code, sorted(run.files)), (0, list(range(self.ranks))), run.errors)
                    self.check(run)

    def test_communicators_are_selected_by_name(self):
        run = ScopeRun(self.abi, self.ranks, "collectives")
        [record] = run.of("communicators")
        [group] = record["groups"]
        self.assertEqual((group["communicator"], group["count"]), ("MPI_COMM_WORLD", 120 * self.ranks))

    def test_many_communicators_keep_their_names(self):
        scopes = ("[[scope]]\nname = 'some'\ncommunicators = ['grid-7', 'grid-9*']\nby = ['communicator', 'rank']\n"
                  f"bytes = '{BYTES}'\n"
                  "[[scope]]\nname = 'all'\nkinds = 'collective'\nby = 'communicator'\nevery = 'end'\n"
                  f"bytes = '{BYTES}'\n")
        run = ScopeRun(self.abi, self.ranks, "named", scopes=scopes)
        some = {("grid-7", rank) for rank in range(self.ranks)}
        some |= {(f"grid-9{tail}", rank) for tail in ["", *"0123456789"] for rank in range(self.ranks)}
        came = run.groups("some", "communicator", "rank")
        self.assertEqual({key: count for key, (count, _) in came.items()}, {key: 5 for key in some}, run.errors)
        came = run.groups("all", "communicator")
        came = {name: count for (name,), (count, _) in came.items() if name != "MPI_COMM_WORLD"}
        self.assertEqual(came, {f"grid-{copy}": 5 * self.ranks for copy in range(100)}, run.errors)

    def test_threads_of_a_rank_are_told_apart(self):
        scopes = (f"[[scope]]\nname = 'threads'\nkinds = 'receive'\nby = ['rank', 'thread']\nbytes = '{BYTES}'\n"
                  f"[[scope]]\nname = 'ranks'\nkinds = 'receive'\nby = 'rank'\nbytes = '{BYTES}'\n")
        run = ScopeRun(self.abi, self.ranks, "threads", scopes=scopes, environment={"WAITS_THREADED": "1"})
        self.assertEqual(run.code, 0, run.errors)
        came = {key: count for key, (count, _) in run.groups("threads", "rank", "thread").items()}
        ranks = {rank: count for (rank,), (count, _) in run.groups("ranks", "rank").items()}
        for rank in range(self.ranks):
            of_threads = [count for (of, _), count in came.items() if of == rank]
            self.assertEqual(sum(of_threads), ranks[rank], came)
            # One thread beside the first, and a third one behind these, which may take the ring of the second.
            self.assertIn(len(of_threads), (2, 3), came)
        self.assertTrue(all(group["thread"] is None for record in run.of("ranks") for group in record["groups"]))

    def test_a_budget_is_kept_and_what_it_costs_is_told(self):
        scopes = "[[scope]]\nname = 'all'\nevery = '100ms'\nby = 'rank'\ncpu = '0.001%'\n"
        # 20,000 quick calls of each rank are more than a leaf reads in 50 microseconds now and then.
        run = ScopeRun(self.abi, self.ranks, "many", scopes=scopes, environment={"SAPWOOD_MPI_RING_BYTES": "1048576"})
        self.assertEqual(run.code, 0, run.errors)
        self.assertGreater(sum(record["throttled"] for record in run.records), 0)
        known = sum(record["events_read"] + record["events_dropped"] for record in run.records)
        self.assertLessEqual(known, 20_020 * self.ranks)

    def test_what_was_overwritten_is_reported_by_ring(self):
        scopes = "[[scope]]\nname = 'all'\nevery = 'end'\nby = 'rank'\n"
        # Of 20,000 calls a ring of 4,096 bytes has the last 128 when it is read.
        run = ScopeRun(self.abi, self.ranks, "many", scopes=scopes, environment={"SAPWOOD_MPI_RING_BYTES": "4096"})
        self.assertEqual(run.code, 0, run.errors)
        [record] = run.of("all")
        rings = record["dropped_rings"]
        self.assertEqual({(ring["rank"], ring["thread"]) for ring in rings}, {(rank, 0) for rank in range(self.ranks)})
        self.assertEqual(sum(ring["events"] for ring in rings), record["events_dropped"], record)
        events = [ring["events"] for ring in rings]
        self.assertEqual(events, sorted(events, reverse=True))

    def test_a_scope_that_has_no_bytes_for_its_groups_merges_some_and_says_so(self):
        scopes = "[[scope]]\nname = 'all'\nevery = '100ms'\nby = ['rank', 'communicator']\ncpu = '100%'\nbytes = '4096'\n"
        # A program with more communicators than such an answer has room for.
        run = ScopeRun(self.abi, self.ranks, "full", scopes=scopes, environment={"SAPWOOD_MPI_RING_BYTES": "1048576"})
        self.assertEqual(run.code, 0, run.errors)
        self.assertGreater(sum(record["groups_folded"] for record in run.records), 0)
        for record in run.records:
            counts = {group["is_others"]: 0 for group in record["groups"]}
            for group in record["groups"]:
                counts[group["is_others"]] += group["count"]
            self.assertEqual(sum(counts.values()), record["events_selected"], record)
            self.assertEqual(counts.get(True, 0) > 0, record["groups_folded"] > 0, record)

    def test_sums_have_room_where_sketches_have_not(self):
        scopes = "".join(f"[[scope]]\nname = '{name}'\nreduce = '{name}'\nbytes = '{size}'\nevery = '100ms'\n"
                         "by = ['rank', 'function']\ncpu = '100%'\n"
                         for name, size in [("sketch", BYTES), ("sums", "4096")])
        run = ScopeRun(self.abi, self.ranks, "many", scopes=scopes, environment={"SAPWOOD_MPI_RING_BYTES": "1048576"})
        self.assertEqual(run.code, 0, run.errors)
        sketch, sums = (run.groups(name, "rank", "function") for name in ("sketch", "sums"))
        self.assertEqual({rank for rank, _ in sketch}, set(range(self.ranks)), run.errors)
        self.assertEqual({key: count for key, (count, _) in sums.items()},
                         {key: count for key, (count, _) in sketch.items()})
        for key, (count, sum_ns) in sketch.items():
            self.assertLessEqual(abs(sums[key][1] - sum_ns), sum_ns * CALIBRATION + 2 * count, key)
        for record in run.records:
            self.assertEqual((record["reduce"], record["groups_folded"]), (record["scope"], 0))
            for group in record["groups"]:
                is_absent = record["scope"] == "sums"
                self.assertEqual((group["median_ns"] is None, group["p99_ns"] is None), (is_absent, is_absent), group)

    def test_the_groups_with_the_largest_sums_are_kept(self):
        # Groups of one rank are chosen on the way, others at the root.
        keys = {"calls": ["rank", "function"], "functions": ["function"]}
        scopes = "".join(f"[[scope]]\nname = '{name}-{reduce}'\nby = {by}\nreduce = '{reduce}'\nevery = 'end'\n"
                         f"bytes = '{BYTES}'\n" for name, by in keys.items() for reduce in ("sketch", "top=2"))
        for fan_out, tree in self.trees.items():
            with self.subTest(fan_out=fan_out):
                run = ScopeRun(self.abi, self.ranks, "collectives", *tree, scopes=scopes)
                self.assertEqual(run.code, 0, run.errors)
                for name, by in keys.items():
                    self.check_largest(run.of(f"{name}-sketch"), run.of(f"{name}-top=2"), by)

    def check_largest(self, of_all, of_largest, by):
        ([whole], [record]) = (of_all, of_largest)
        self.assertEqual((record["reduce"], record["groups_folded"]), ("top=2", 0))
        rest = {tuple(group[key] for key in by): group for group in whole["groups"]}
        kept = [group for group in record["groups"] if not group["is_others"]]
        [others] = [group for group in record["groups"] if group["is_others"]]
        self.assertEqual(len(kept), 2)
        for group in kept:
            same = rest.pop(tuple(group[key] for key in by))
            self.assertEqual(group["count"], same["count"])
            near = same["sum_ns"] * CALIBRATION + 2 * same["count"]
            self.assertLessEqual(abs(group["sum_ns"] - same["sum_ns"]), near, group)
        least = min(group["sum_ns"] for group in kept)
        self.assertGreater(len(rest), 0)
        for group in rest.values():
            self.assertLessEqual(group["sum_ns"], least * (1 + CALIBRATION) + 2 * group["count"])
        self.assertEqual(others["count"], sum(group["count"] for group in rest.values()))
        self.assertEqual([others[key] for key in by], [None] * len(by))

    def test_events_are_all_read_at_whichever_moments(self):
        moments = ("any", "waiting", "released")
        scopes = "".join(f"[[scope]]\nname = '{when}'\nevery = '100ms'\nby = 'rank'\ncpu = '100%'\nbytes = '{BYTES}'\n"
                         f"when = '{when}'\n" for when in moments)
        run = ScopeRun(self.abi, self.ranks, "many", scopes=scopes, environment={"SAPWOOD_MPI_RING_BYTES": "1048576"})
        self.assertEqual(run.code, 0, run.errors)
        counts = {when: {rank: count for (rank,), (count, _) in run.groups(when, "rank").items()} for when in moments}
        self.assertEqual(set(counts["any"]), set(range(self.ranks)), run.errors)
        self.assertEqual(counts["waiting"], counts["any"], run.errors)
        self.assertEqual(counts["released"], counts["any"], run.errors)
        self.assertEqual(sum(record["groups_folded"] for record in run.records), 0)
        self.assertEqual([record["put_off"] + record["overdue"] for record in run.of("any")],
                         [0] * len(run.of("any")))

    def test_a_program_that_is_watched_already_is_asked(self):
        told = []

        def ask(run, *options):
            words = [sapwood(), "trace", "scope", "--job", f"mpi-{run.process.pid}", *options]
            done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)
            return done if done.returncode == 0 else None

        def act(run):
            paced.wait_for_ranks(run)
            wait = "scope ranks after"
            told.append(run.wait_for("figures", lambda: (lambda one: one if one and wait in one.stdout else None)(
                ask(run, "--scope", "name=ranks by=rank"))))
            lines = os.path.join(run.folder, "asked.ndjson")
            told.append(ask(run, "--for", "3s", "--scope", "by=rank every=100ms", "--ndjson", lines))
            with open(lines, encoding="utf-8") as file:
                told.append([json.loads(line) for line in file])
            paced.end()

        with Paced(self.abi, self.ranks) as paced:
            run = RecordedRun(paced.command, "--waits", "--interval", "100ms", "--quiet", while_running=act, out=False)
        self.assertEqual(run.code, 0, run.errors)
        once, repeated, records = told
        self.assertIn(f"{self.ranks} ranks", once.stdout)
        self.assertEqual((repeated.stdout, repeated.stderr), ("", ""))
        self.assertGreaterEqual(len(records), 2)
        # The first one is of all that the rings hold, the others of what came since.
        self.assertTrue(all(record["ranks"] == self.ranks and record["events_dropped"] == 0 for record in records))
        self.assertTrue(all({group["rank"] for group in record["groups"]} == set(range(self.ranks))
                            for record in records[:1]))

    def test_the_program_keeps_its_output_and_its_code(self):
        run = ScopeRun(self.abi, self.ranks, "dies", scopes="[[scope]]\nby = 'rank'\n")
        self.assertNotEqual(run.code, 0)
        self.assertTrue(run.records and run.records[-1]["is_last"], run.errors)
        self.assertNotIn("sapwood", run.output)


class OpenMpi(ScopeTruth, unittest.TestCase):
    abi = "openmpi"

    def test_a_gathering_takes_no_more_of_a_processor_than_its_share_and_a_part_of_reading_all(self):
        found = {"parts": []}

        def ask(run, share):
            words = [sapwood(), "trace", "scope", "--job", f"mpi-{run.process.pid}", "--ndjson", "-", "--scope",
                     f"by=rank every=end cpu={share} bytes={BYTES}"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)
            return json.loads(done.stdout) if done.returncode == 0 else None

        def cpu_s_max():
            # One that is gathered once has the share of ten seconds, and may end the piece that it has begun.
            return 10 * 1e-4 + found["all"]["cpu_s"] / 4

        def whole(run):
            record = ask(run, "100%")
            return record if record and record["events_read"] >= CALLS * self.ranks else None

        def act(run):
            made = [os.path.join(run.folder, f"made.{rank}") for rank in range(self.ranks)]
            run.wait_for("calls", lambda: all(map(os.path.exists, made)))
            found["all"] = run.wait_for("a gathering of all calls", lambda: whole(run))
            # A piece costs more of a processor that other programs have held just before, as caches are empty then. One
            # that heeds no share costs too much each time.
            for _ in range(GATHERINGS_MAX):
                part = run.wait_for("a gathering within its share", lambda: ask(run, "0.01%"))
                found["parts"].append(part)
                if part["cpu_s"] <= cpu_s_max():
                    break
            open(os.path.join(run.folder, "go-on"), "x", encoding="utf-8").close()

        # All ranks at one leaf, which has one share.
        run = Watched([*LAUNCHERS[self.abi], str(self.ranks), SYSTEM_PYTHON, "-c", MADE], "--waits", "--quiet",
                      "--ranks-per-leaf", str(self.ranks), while_running=act, out=False)
        self.assertEqual(run.code, 0, run.errors)
        all_of_it = found["all"]
        self.assertEqual((all_of_it["throttled"], all_of_it["events_dropped"]), (0, 0), found)
        for part in found["parts"]:
            self.assertEqual(part["events_dropped"], 0, found)
            self.assertGreater(part["throttled"], 0, found)
            self.assertLess(part["events_read"], all_of_it["events_read"], found)
            self.assertGreaterEqual(part["events_read"] + part["events_waiting"], CALLS * self.ranks, found)
        self.assertLessEqual(found["parts"][-1]["cpu_s"], cpu_s_max(), found)


class Mpich(ScopeTruth, unittest.TestCase):
    abi = "mpich"
    ranks = 2
    # Trees, which know no MPI, are compared with Open MPI.
    trees = {2: TREES[2]}


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

"""Runs `sapwood bench trace --only culprit` with single trials of real programs, and checks what it tells of them.
Of the slow programs in tests/culprits it checks what `[slow]` in their expect.toml promises.

Needs the environment that benchmarks.py names, and python3-jsonschema.
"""

import json
import os
import signal
import subprocess
import unittest

import jsonschema

import turns
import watched
from benchmarks import bench
from watched import LAUNCHERS, SYSTEM_PYTHON, Watched, has_mpi, sapwood, test_program, whole_lines
from why import expected_of, ranks_of

RANKS = 4
# A benchmark runs several programs one after another.
BENCH_SECONDS_MAX = 3 * watched.RUN_SECONDS_MAX
# A rank is named at most this long after the deadline, on a machine that is free.
NAMED_SECONDS_MAX = 1.0
# Collectives for which a slow program is watched.
COLLECTIVES = 60
# By how much a share may differ from the one that is promised, on a machine that has other work.
SHARE_OFF_MAX = 0.25
# A rank is late by half of what is promised at least, whatever holds up the others; and by a quarter more at most,
# beside what the machine adds.
LATE_MIN, LATE_MAX = 0.5, 1.25
SCHEMA = os.path.join(watched.HERE, "..", "..", "..", "docs", "schema", "bench-trace-1.json")
OVER_TCP = ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")


def withheld_seconds():
    """For how long, since the machine was started, a process has waited for a processor or for a disk; None if the
    kernel does not say. A chain of processes is held up by others for no longer than this grows meanwhile."""
    microseconds = 0
    for what in ("cpu", "io"):
        try:
            with open(f"/proc/pressure/{what}", encoding="ascii") as file:
                some = file.readline().split()
        except OSError:
            return None
        microseconds += int(some[-1].removeprefix("total="))
    with open("/proc/stat", encoding="ascii") as file:
        stolen = int(file.readline().split()[8])
    return microseconds / 1e6 + stolen / os.sysconf("SC_CLK_TCK")


@turns.alone("how soon a rank is named is timed")
class CulpritTrials(unittest.TestCase):
    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")

    def trials(self, *words):
        """The answer of the benchmark."""
        before = withheld_seconds()
        done = bench("trace", "--only", "culprit", "--ranks", str(RANKS), "--trials", "1", "--python", SYSTEM_PYTHON,
                     *words, seconds_max=BENCH_SECONDS_MAX)
        self.withheld = None if before is None else withheld_seconds() - before
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["culprit"]
        if not found["rows"]:
            self.assertTrue(found["left_out"], found)
            self.skipTest("; ".join(one["why"] for one in found["left_out"]))
        return found

    def check_worst(self, found):
        """The rank is named after the deadline, and within a second of it beside what the machine withheld."""
        rows = [row["worst_s"] for row in found["rows"]]
        self.assertEqual(found["worst_s"], max(rows), found)
        self.assertGreater(found["worst_s"], 0, found)
        if self.withheld is not None:
            self.assertLessEqual(found["worst_s"], NAMED_SECONDS_MAX + self.withheld, found)

    def test_a_rank_that_is_stopped_is_named_within_a_second_of_the_deadline(self):
        found = self.trials("--programs", "solver", "--kinds", "stopped", "--clean", "0")
        [row] = found["rows"]
        self.assertEqual((row["program"], row["kind"], row["trials"], row["right"]), ("solver", "stopped", 1, 1), found)
        self.assertEqual((found["trials"], found["right"], found["clean_runs"]), (1, 1, 0), found)
        self.check_worst(found)

    def test_a_fault_in_front_of_an_unmodified_program_is_found(self):
        found = self.trials("--programs", "lammps", "--kinds", "endless_loop,other_root", "--clean", "0")
        [row] = found["rows"]
        self.assertEqual((row["kind"], row["right"]), ("endless_loop", 1), found)
        self.check_worst(found)
        [left_out] = found["left_out"]
        self.assertEqual((left_out["program"], left_out["kind"]), ("lammps", "other_root"), found)

    def test_a_rank_is_named_whose_amount_made_mpi_end_the_program(self):
        found = self.trials("--programs", "lammps,solver", "--kinds", "other_count", "--clean", "0")
        for row in found["rows"]:
            self.assertEqual((row["kind"], row["trials"], row["right"]), ("other_count", 1, 1), found)


class Costs(unittest.TestCase):
    """What events and monitors cost, by `sapwood bench trace`: that all are run, and not how long they take."""

    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")

    def measured(self, launch):
        return bench("trace", "--only", "gsum", "--pairs", "1", "--iterations", "2000", f"--launch={launch}", "--where",
                     "two slots", seconds_max=BENCH_SECONDS_MAX)

    def test_each_monitor_reads_all_events_where_the_launcher_is_told_to_start_ranks(self):
        done = self.measured("--oversubscribe --host localhost:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        monitors = [("collectors", None), ("analysis", 1), ("statistics", 1), ("waiting", 1), ("released", 1)]
        for rows in (found["gsum"], found["compute_gsum"]):
            self.assertEqual([(row["monitor"], row["gather_rate"]) for row in rows], monitors)
            self.assertEqual({(row["where"], row["ranks"], row["pairs"]) for row in rows}, {("two slots", 2, 1)})

    def check_spreads(self, section):
        """Each figure of a section is the median of its spread, which is of one run here."""
        self.assertTrue(section["spread"])
        for name, spread in section["spread"].items():
            one = section[name]
            self.assertEqual(spread, {"min": one, "median": one, "max": one, "runs": 1}, name)

    def check_streams(self, streams):
        self.assertEqual(streams["topology"], "1x4")
        monitors = [("collectors", None), ("load_balance", 1), ("statistics", 1)]
        for rows, is_sorted in ((streams["gsum"], False), (streams["compute_gsum"], True)):
            self.assertEqual([(row["monitor"], row["gather_rate"]) for row in rows], monitors)
            for row in rows:
                place = ("streams, one host", 4, 200, 1)
                self.assertEqual((row["where"], row["ranks"], row["iterations"], row["pairs"]), place)
                self.assertEqual((row["low"], row["high"]), (row["overhead"], row["overhead"]), row)
                self.assertEqual(row["sorted"] > 0, is_sorted, row)
                self.assertGreater(row["seconds"], 0, row)

    def test_events_memory_and_streams_are_measured_and_written_as_the_schema_says(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("the launcher has no place for two ranks here")
        done = bench("trace", "--only", "event,memory,streams", "--topology", "1x4", "--pairs", "1",
                     "--iterations", "200", seconds_max=BENCH_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        with open(SCHEMA, encoding="utf-8") as file:
            jsonschema.Draft202012Validator(json.load(file)).validate(found)
        self.assertLessEqual({"event", "memory", "streams"}, set(found))
        self.assertFalse({"gsum", "compute_gsum", "culprit"} & set(found), found)
        event, memory = found["event"], found["memory"]
        self.check_spreads(event)
        self.check_spreads(memory)
        # One look at the counter and the record, over one look at the clock.
        self.assertGreater(event["clock_ns"], 0)
        ratio = (event["record_ns"] + event["tsc_ns"]) / event["clock_ns"]
        self.assertAlmostEqual(event["ratio_tsc"], ratio, places=9)
        # Records of 32 bytes; the process has at least the pages of its program.
        self.assertEqual(memory["events_per_mib"], (1 << 20) // 32)
        self.assertGreater(memory["rss_bytes"], 0)
        self.check_streams(found["streams"])

    def test_words_for_the_launcher_reach_it(self):
        done = self.measured("--no-such-option")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("no-such-option", done.stderr)


class SlowRun(Watched):
    """A slow program under `sapwood mpi --waits`, ended after some collectives. `why` is what was told of it then,
    `waits` how long each rank has waited since the first round that had waits, `seconds` how long that was."""

    def __init__(self, command):
        before = withheld_seconds()
        super().__init__(command, "--waits", "--quiet", "--interval", "250ms", while_running=self.watch)
        self.withheld = None if before is None else withheld_seconds() - before
        first, last = (next(self.with_collectives(rounds)) for rounds in (self.rounds, reversed(self.rounds)))
        waited = lambda record: {one["rank"]: one["wait_ns"] / 1e9 for one in record["waits"]["ranks"]}
        begin, end = waited(first), waited(last)
        self.seconds = last["elapsed_s"] - first["elapsed_s"]
        self.waits = {rank: end[rank] - begin.get(rank, 0) for rank in end}

    @staticmethod
    def with_collectives(rounds):
        return (record for record in rounds if record["waits"] and record["waits"]["collectives"] > 0)

    def watch(self, _):
        def is_enough():
            rounds = whole_lines(os.path.join(self.out, "rounds.ndjson"))
            return any(record["waits"]["collectives"] >= COLLECTIVES for record in self.with_collectives(rounds))

        self.wait_for("collectives", is_enough)
        words = [sapwood(), "trace", "why", "--job", f"mpi-{self.process.pid}", "--json", "-"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=watched.RUN_SECONDS_MAX)
        self.why = json.loads(done.stdout)
        self.process.send_signal(signal.SIGTERM)


@turns.alone("shares of time are compared with what the programs promise")
class SlowPrograms(unittest.TestCase):
    """What `[slow]` promises: which ranks are waited for, how late they come, and the share of time that each waits."""

    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")

    def check(self, case, *options):
        expected = expected_of(case)
        program = test_program("openmpi", os.path.join("culprits", case))
        run = SlowRun([*LAUNCHERS["openmpi"], str(expected["ranks"]), *options, program])
        place = run.why["slow"][0]
        self.assertEqual(place["function"], "MPI_Allreduce", run.why["slow"])
        for late in [wait["for"] for wait in expected["waiting"] if wait["call"] == "MPI_Allreduce"]:
            self.check_group(run, place, set(late), expected["slow"])
        for rank, share in enumerate(expected["slow"]["wait_share"]):
            measured = run.waits.get(rank, 0) / run.seconds
            self.assertAlmostEqual(measured, share, delta=SHARE_OFF_MAX, msg=f"rank {rank}: {run.waits} {run.seconds}")

    def check_group(self, run, place, late, slow):
        # Which of several that come together is the last one is not promised.
        groups = [one for one in place["groups"] if ranks_of(one["came_last"]) <= late]
        share = sum(slow["last"][rank] for rank in late)
        self.assertAlmostEqual(sum(one["lost_share"] for one in groups), share, delta=SHARE_OFF_MAX, msg=place)
        most = max(groups, key=lambda one: one["lost_s"])
        late_seconds = slow["late_ms"] / 1e3
        self.assertGreaterEqual(most["late_s"], LATE_MIN * late_seconds, most)
        if run.withheld is not None:
            lateness, withheld = most["late_s"] * most["times_late"], run.withheld
            self.assertLessEqual(lateness, LATE_MAX * late_seconds * most["times_late"] + withheld, most)

    def test_slow_rank(self):
        self.check("slow_rank")

    def test_two_phases(self):
        self.check("two_phases")

    def test_late_checkpoint(self):
        self.check("late_checkpoint")

    def test_slow_link(self):
        self.check("slow_link", *OVER_TCP)

    def test_each_program_with_such_a_promise_is_checked(self):
        folder = os.path.join(watched.HERE, "culprits")
        promised = {case for case in os.listdir(folder) if "slow" in expected_of(case)}
        self.assertLessEqual(promised, {name.removeprefix("test_") for name in vars(SlowPrograms)})


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

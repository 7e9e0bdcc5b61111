"""Kills MPI programs with all that watches them, and reads the files that their ranks have kept in a folder.

`sapwood trace why --from FOLDER` must name the rank that had not come, as it does of a program that lives, with
and without a monitor; name files that cannot be read, and go on, without an accusation that these may refute; tell how
ranks ended as the monitor did; and a folder that cannot be used must change nothing of the program.

Needs the environment that watched.py names; `make truth` sets it.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import turns
import watched
from marks import MARK, end_what_is_left, kill_and_wait, marked, new_mark
from paced import Paced
from watched import (LAUNCHERS, Hang, OneMpi, Watched, sapwood, shim_of, test_program, wait_until, whereabouts,
                     words_until)
from why import WhyTruth, expected_of, ranks_of

CASE = "early_break"
# So that a folder of files is small.
RING = {"SAPWOOD_MPI_RING_BYTES": "65536"}
# A rank looks at this many names of a folder (shim/earlier_run.c); and more.
NAMES_LOOKED_AT = 512
NAMES = 800
# What the two halves of the case have called by then, but for the rank that is missing.
COLLECTIVES_MIN = 70


def read(folder, *options, question="why"):
    """What `sapwood trace why --from` says of a folder, or another question."""
    words = [sapwood(), "trace", question, "--from", folder, *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)


def found(folder):
    """The same as a JSON object; None while nothing can be read."""
    done = read(folder, "--json", "-")
    return json.loads(done.stdout) if done.returncode == 0 else None


def rounded(ends):
    """Ends with their times in whole nanoseconds: a reader of JSON may have the last bit of a number wrong."""
    return [{**end, "elapsed_s": round(end["elapsed_s"], 9)} for end in ends]


class Doomed:
    """A run of which everything that is left is killed at the end."""

    def __init__(self, words, **environment):
        self.mark = new_mark()
        self.process = subprocess.Popen(words, env={**os.environ, MARK: self.mark, **RING, **environment}, text=True,
                                        start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    @classmethod
    def preloaded(cls, abi, program, ranks, folder, *arguments, **environment):
        """A program whose shim was preloaded by hand, and that nothing watches."""
        words = [*LAUNCHERS[abi], str(ranks), test_program(abi, program), *arguments]
        return cls(words, LD_PRELOAD=shim_of(abi), SAPWOOD_MPI_EVENTS_DIR=folder, **environment)

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        if isinstance(error, Hang):
            error.add_note(whereabouts(self.mark))
        self.kill()
        self.process.communicate(timeout=watched.RUN_SECONDS_MAX)

    def kill(self):
        try:
            kill_and_wait(pid for pid, _ in marked(self.mark))
        finally:
            end_what_is_left(self.mark)


class FolderTruth(OneMpi):
    """Tests for one MPI; a subclass names it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sapwood-mpi-events-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.expected = expected_of(CASE)

    def check(self, why):
        """Whether an answer names the rank that had not come."""
        WhyTruth.check_stuck(self, why["stuck"], self.expected)
        self.assertEqual((why["ranks"], why["has_ended"]), (self.expected["ranks"], True), why)
        self.assertGreater(why["collectives"], COLLECTIVES_MIN, why)

    def until_stuck(self, is_it, folder=None):
        """Waits until the files of a folder say that the program is stuck like this; what they say then."""
        seen = []

        def stuck():
            why = found(folder or self.folder)
            seen[:] = [why and why["stuck"]]
            return why if why and why["stuck"] and is_it(why["stuck"]) else None

        return wait_until("files that say how the program is stuck", stuck, seen)

    def until_it_hangs(self, folder=None):
        """The same of the program whose ranks all wait."""
        def is_it(stuck):
            waiting = sum(len(ranks_of(one["ranks"])) for one in stuck["waiting"])
            return waiting == self.expected["ranks"] and stuck["finding"] == "deviation"

        return self.until_stuck(is_it, folder)

    def hang(self):
        """Leaves the files of a program that hung, and was killed."""
        with Doomed.preloaded(self.abi, os.path.join("culprits", CASE), self.expected["ranks"], self.folder):
            self.until_it_hangs()

    def file_of(self, rank, kind):
        [name] = [name for name in os.listdir(self.folder) if name.startswith(f"rank-{rank}.") and name.endswith(kind)]
        return os.path.join(self.folder, name)

    def process_of(self, rank):
        return int(os.path.basename(self.file_of(rank, ".profile")).split(".")[-2])

    def test_files_outlive_ranks_launcher_and_monitor_that_are_killed(self):
        folder = os.path.join(self.folder, "made")
        command = WhyTruth.command(self, CASE, self.expected)
        with Doomed([sapwood(), "trace", "why", "--events-folder", folder, "--", *command]) as run:
            words_until(run, "sapwood:   waiting: ")
            # A start that lasts for longer than the deadline has a verdict before.
            self.until_it_hangs(folder)
            # The monitor first, so that it tells nothing of the ends of others.
            run.process.send_signal(signal.SIGKILL)
        self.assertEqual(run.process.returncode, -signal.SIGKILL)
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        modes = {os.stat(os.path.join(folder, name)).st_mode & 0o777 for name in os.listdir(folder)}
        self.assertEqual((modes, len(os.listdir(folder))), ({0o600}, 2 * self.expected["ranks"]))
        self.check(found(folder))
        done = read(folder)
        self.assertIn("rank 3 has not entered MPI_Allreduce number 40 on high", " ".join(done.stdout.split()))
        self.assertEqual(done.stderr, "")

    def test_without_a_monitor_ranks_record_as_well(self):
        self.hang()
        self.check(found(self.folder))
        done = read(self.folder, question="freeze")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("MPI_Allreduce", done.stdout)
        self.assertIn("missing: how ranks ended, and which of them first: no monitor has left", done.stdout)

    def test_files_that_cannot_be_read_are_named_and_the_rest_is_told(self):
        self.hang()
        os.truncate(self.file_of(0, ".events"), 8192)
        with open(self.file_of(1, ".profile"), "r+b") as file:
            file.seek(8)
            file.write(b"\xff")
        shutil.copy(self.file_of(2, ".profile"), os.path.join(self.folder, "rank-2.elsewhere.1.profile"))
        with open(os.path.join(self.folder, "rank-9.elsewhere.1.profile"), "wb") as file:
            file.write(os.urandom(4096))
        done = read(self.folder)
        lines = done.stderr.splitlines()
        self.assertEqual((done.returncode, len(lines)), (0, 4), done.stderr)
        for wanted in ("it is cut: it has 8192 bytes of", "version", "rank-2.elsewhere.1.events", "rank-9.elsewhere.1"):
            self.assertEqual(sum(wanted in line for line in lines), 1, done.stderr)
        self.assertIn("not known: ranks 0-1: no file in", done.stdout)
        self.assertIn("rank 3 has not entered MPI_Allreduce number 40 on high", " ".join(done.stdout.split()))

    def test_without_the_files_of_some_ranks_no_other_one_is_accused(self):
        self.hang()
        os.truncate(self.file_of(2, ".events"), 8192)
        with open(self.file_of(3, ".profile"), "wb") as file:
            file.write(os.urandom(4096))
        why = found(self.folder)
        self.assertEqual((why["stuck"]["finding"], why["stuck"]["culprits"]), ("unknown", ""), why["stuck"])
        which, without = why["unknown"][:2]
        self.assertRegex(which, "^ranks 2-3: no file in '.*' that can be read: .*rank 2: event file: it is cut")
        self.assertTrue(without.startswith("whether others wait for ranks 2-3, and which rank"), without)

    @unittest.skipIf(os.geteuid() == 0, "the superuser may read any file")
    def test_a_file_that_another_user_may_not_read_is_told_with_the_reason(self):
        self.hang()
        os.chmod(self.file_of(3, ".events"), 0)
        why = found(self.folder)
        self.assertEqual(why["stuck"]["culprits"], "", why["stuck"])
        self.assertRegex(why["unknown"][0], "^rank 3: no file in '.*' that can be read: Permission denied")

    def test_how_ranks_ended_is_told_by_the_file_of_the_monitor_as_by_itself(self):
        folder, file = (os.path.join(self.folder, name) for name in ("made", "why.json"))
        command = WhyTruth.command(self, CASE, self.expected)
        with Doomed([sapwood(), "trace", "why", "--json", file, "--events-folder", folder, "--", *command]) as run:
            words_until(run, "sapwood:   waiting: ")
            self.until_it_hangs(folder)
            [name] = [name for name in os.listdir(folder) if name.startswith("rank-3.") and name.endswith(".profile")]
            kill_and_wait([int(name.split(".")[-2])])
            run.process.communicate(timeout=watched.RUN_SECONDS_MAX)
        with open(file, encoding="utf-8") as text:
            told = json.load(text)
        why = found(folder)
        self.assertEqual((rounded(why["ends"]), why["deaths"]), (rounded(told["ends"]), told["deaths"]))
        killed = [one["cause"] for one in why["ends"] if 3 in ranks_of(one["ranks"])]
        self.assertTrue(killed and killed[0].startswith("signal 9"), why["ends"])
        freeze = json.loads(read(folder, "--json", "-", question="freeze").stdout)
        self.assertEqual((rounded(freeze["ends"]), freeze["deaths"]), (rounded(told["ends"]), told["deaths"]))
        self.assertFalse([line for line in why["unknown"] if line.startswith("how ranks ended")], why["unknown"])
        self.assertEqual(os.stat(os.path.join(folder, "ends.json")).st_mode & 0o777, 0o600)
        os.remove(os.path.join(folder, "ends.json"))
        self.assertIn("not known: how ranks ended, and which of them first: no monitor", read(folder).stdout)

    def test_ranks_whose_tracing_is_paused_are_told_while_they_run_and_by_their_files(self):
        kept = os.path.join(self.folder, "kept")
        environment = {"XDG_RUNTIME_DIR": self.folder, **RING}

        def ask(*words):
            return subprocess.run([sapwood(), *words], env={**os.environ, **environment}, capture_output=True,
                                  text=True, timeout=watched.RUN_SECONDS_MAX)

        def unknown(*words):
            done = ask("trace", "why", *words, "--json", "-")
            return json.loads(done.stdout)["unknown"] if done.returncode == 0 else None

        def is_gathered():
            lines = unknown()
            return lines is not None and not any(line.startswith("how long ranks have waited: ") for line in lines)

        def is_told(*words):
            start = "calls of ranks 0-1: their tracing is paused, "
            return any(line.startswith(start) for line in unknown(*words) or [])

        def act(run):
            paced.wait_for_ranks(run)
            # What was never gathered has no line in the report.
            run.wait_for("calls that are gathered", is_gathered)
            ask("mpi", "control", "--tracing", "off").check_returncode()
            for words in ((), ("--from", kept)):
                run.wait_for("ranks that are paused", lambda words=words: is_told(*words))
            paced.end()

        with Paced(self.abi, 2) as paced:
            run = Watched(paced.command, "--interval", "100ms", "--quiet", "--waits", "--events-folder", kept,
                          while_running=act, environment=environment)
        self.assertEqual(run.code, 0, run.errors)
        since = "(the first of them )?since [0-9.]+ s after the start, for "
        self.assertRegex(run.report, f"(?m)^culprit .*; tracing of ranks 0-1 was paused at the end, {since}")

    def test_of_a_program_that_runs_it_is_said_how_long_it_has_been_stuck(self):
        with Doomed.preloaded(self.abi, os.path.join("culprits", CASE), self.expected["ranks"], self.folder):
            why = self.until_it_hangs()
            self.assertFalse(why["has_ended"], why)
            self.assertGreater(why["stuck"]["for_s"], 0, why)
            done = read(self.folder, question="freeze")
            self.assertIn("frozen on request", done.stdout)
        self.check(found(self.folder))

    def test_a_rank_that_was_killed_in_a_call_that_the_others_have_left_is_named(self):
        go, base = (os.path.join(self.folder, name) for name in ("go", "notes"))
        with Doomed.preloaded(self.abi, "waits", 4, self.folder, "left", base, WAITS_GO=go):
            self.until_stuck(lambda stuck: {one["ranks"] for one in stuck["waiting"]} == {"1-3"})
            process = self.process_of(3)
            os.kill(process, signal.SIGSTOP)
            with open(go, "w", encoding="utf-8"):
                pass
            why = self.until_stuck(lambda stuck: {one["function"] for one in stuck["waiting"]} == {"MPI_Barrier"})
            self.assertIn("rank 3 is stopped by a signal, in MPI_Bcast", why["stuck"]["statement"])
            kill_and_wait([process])
        why = found(self.folder)
        self.assertEqual((why["has_ended"], why["stuck"]["culprits"]), (True, "3"), why)
        place = "MPI_Bcast number 6 with root 0 on MPI_COMM_WORLD"
        self.assertIn(f"rank 3 was last seen in {place}, which all others have left", why["stuck"]["statement"])

    def test_a_call_that_does_not_fit_is_told_of_its_window_and_before_a_rank_that_has_died(self):
        with Doomed.preloaded(self.abi, os.path.join("culprits", "other_root"), 4, self.folder) as run:
            unlike = "rank 1 called MPI_Bcast with root 1 where most called MPI_Bcast with root 0"
            # Whether rank 1 has left its broadcast differs from MPI to MPI.
            self.until_stuck(lambda stuck: stuck["statement"].startswith(unlike) and
                             {"0"} < {one["ranks"] for one in stuck["waiting"]})
            freeze = json.loads(read(self.folder, "--json", "-", question="freeze").stdout)
            self.assertTrue(freeze["statement"].startswith(unlike), freeze["statement"])
            self.assertEqual([(one["culprit"], one["number"]) for one in freeze["mixed"]], [(1, 21)], freeze["mixed"])
            # So that it does not end the other ranks.
            ranks = {self.process_of(rank) for rank in range(4)}
            for process in {pid for pid, _ in marked(run.mark)} - ranks:
                os.kill(process, signal.SIGSTOP)
            kill_and_wait([self.process_of(2)])
            why = self.until_stuck(lambda stuck: "rank 2 has died" in stuck["statement"])
            self.assertTrue(why["stuck"]["statement"].startswith(unlike), why["stuck"])
            self.assertEqual((why["has_ended"], why["stuck"]["culprits"]), (False, "1-2"), why["stuck"])
            self.assertGreater(why["stuck"]["for_s"], 0, why["stuck"])

    def test_files_of_two_runs_are_not_mixed(self):
        self.hang()
        for kind in (".profile", ".events"):
            shutil.copy(self.file_of(2, kind), os.path.join(self.folder, f"rank-2.elsewhere.1{kind}"))
        done = read(self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("of two runs, rank 2 is in both", done.stderr)

    def run_preloaded(self, ranks):
        """Standard error of a program that ends in order and keeps files."""
        with Doomed.preloaded(self.abi, "solver", ranks, self.folder) as run:
            _, errors = run.process.communicate(timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual(run.process.returncode, 0, errors)
        return errors

    def test_a_rank_does_not_keep_files_beside_those_of_an_earlier_run(self):
        # None of its own run is taken for one, though they start one after another.
        self.assertNotIn("keeps no event file", self.run_preloaded(4))
        before = sorted(os.listdir(self.folder))
        self.assertEqual(len(before), 2 * 4)
        # More ranks, so that of two there is none of the same number.
        errors = self.run_preloaded(6)
        self.assertEqual(errors.count("it holds files of an earlier run, such as 'rank-"), 1, errors)
        self.assertIn("its events are in memory only", errors)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        why = found(self.folder)
        self.assertEqual((why["ranks"], why["stuck"]), (4, None), why)

    def begin_of_a_table(self):
        """What the table of a rank begins with; its run, which is over, is an earlier one for others."""
        self.run_preloaded(2)
        with open(self.file_of(0, ".profile"), "rb") as table:
            return table.read(4096)

    def test_the_files_of_an_earlier_run_are_seen_however_many_there_are(self):
        begin = self.begin_of_a_table()
        for rank in range(2, 402):
            for kind in (".profile", ".events"):
                with open(os.path.join(self.folder, f"rank-{rank}.elsewhere.1{kind}"), "xb") as file:
                    file.write(begin)
        before = sorted(os.listdir(self.folder))
        errors = self.run_preloaded(2)
        self.assertEqual(errors.count("it holds files of an earlier run, such as 'rank-"), 1, errors)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_each_rank_looks_at_a_bounded_number_of_names(self):
        begin = self.begin_of_a_table()
        for last_is_left in (False, True):
            folder = os.path.join(self.folder, f"{last_is_left}")
            os.mkdir(folder)
            self.fill_beside_a_table_of_an_earlier_run(folder, begin, last_is_left)
            before = len(os.listdir(folder))
            with Doomed.preloaded(self.abi, "solver", 2, folder) as run:
                _, errors = run.process.communicate(timeout=watched.RUN_SECONDS_MAX)
            self.assertEqual(run.process.returncode, 0, errors)
            # What is behind the bound costs nothing and is not seen; a reader of the folder tells it.
            self.assertEqual(errors.count("it holds files of an earlier run"), 0 if last_is_left else 1, errors)
            self.assertEqual(len(os.listdir(folder)), before + (2 * 2 if last_is_left else 0))

    def fill_beside_a_table_of_an_earlier_run(self, folder, begin, is_last):
        """Makes names of ranks that may be of the next run, as those of a large job, and among them one table: in the
        order in which the folder is read, the first of as many, or the last, behind more names than are looked at."""
        for rank in range(2, 2 + NAMES):
            for kind in (".events", ".profile"):
                with open(os.path.join(folder, f"rank-{rank}.elsewhere.1{kind}"), "xb"):
                    pass
        tables = [one.name for one in os.scandir(folder) if one.name.endswith(".profile")]
        kept = tables.pop(-1 if is_last else 0)
        with open(os.path.join(folder, kept), "wb") as file:
            file.write(begin)
        for name in tables:
            os.remove(os.path.join(folder, name))
        place = [one.name for one in os.scandir(folder)].index(kept)
        self.assertEqual(place > NAMES_LOOKED_AT, is_last, "the folder has another order than it had")

    def test_a_rank_does_not_keep_files_where_all_users_may_write(self):
        os.chmod(self.folder, 0o777)
        errors = self.run_preloaded(2)
        self.assertEqual(errors.count("it may be written by all users (mode 777)"), 1, errors)
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(os.geteuid() == 0, "only the superuser may give a folder to another user")
    def test_a_rank_does_not_keep_files_in_a_folder_of_another_user(self):
        os.chown(self.folder, 1, -1)
        errors = self.run_preloaded(2)
        self.assertEqual(errors.count("it belongs to user 1, and this is user 0"), 1, errors)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_that_cannot_be_used_changes_nothing_but_one_line(self):
        for folder in (os.path.join(self.folder, "none"), "/proc/self"):
            with Doomed.preloaded(self.abi, "solver", 2, folder) as run:
                _, errors = run.process.communicate(timeout=watched.RUN_SECONDS_MAX)
            self.assertEqual(run.process.returncode, 0, errors)
            self.assertEqual(errors.count(f"keeps no event file in '{folder}'"), 1, errors)
        self.assertEqual(os.listdir(self.folder), [])


class OpenMpi(FolderTruth, unittest.TestCase):
    abi = "openmpi"

    def test_files_of_different_ranks_are_told_apart_by_the_name_that_the_launcher_gives_a_run(self):
        runs = [os.path.join(self.folder, name) for name in ("one", "two")]
        for folder in runs:
            os.mkdir(folder)
            with Doomed.preloaded(self.abi, "solver", 2, folder) as run:
                _, errors = run.process.communicate(timeout=watched.RUN_SECONDS_MAX)
            self.assertEqual(run.process.returncode, 0, errors)
        # Of the first run the files of rank 0 are left, of the second one those of rank 1.
        one, two = ([name for name in os.listdir(folder) if name.startswith("rank-1.")] for folder in runs)
        for name in one:
            os.remove(os.path.join(runs[0], name))
        for name in two:
            shutil.move(os.path.join(runs[1], name), runs[0])
        done = read(runs[0])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("holds files of two runs: 'rank-0.", done.stderr)
        self.assertIn("and 'rank-1.", done.stderr)

    def test_a_folder_that_cannot_be_made_is_told_before_the_program_starts(self):
        words = [sapwood(), "trace", "why", "--events-folder", os.path.join(self.folder, "no", "where"), "--",
                 *LAUNCHERS[self.abi], "2", test_program(self.abi, "solver")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn("no/where' cannot be used", done.stderr)

    def test_a_run_that_ends_leaves_its_files_too(self):
        words = [sapwood(), "mpi", "--quiet", "--events-folder", self.folder, "--", *LAUNCHERS[self.abi], "2",
                 test_program(self.abi, "solver")]
        done = subprocess.run(words, env={**os.environ, **RING}, capture_output=True, text=True,
                              timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        why = found(self.folder)
        self.assertEqual((why["ranks"], why["stuck"], why["ends"]), (2, None, []), why)
        self.assertGreater(why["collectives"], 0, why)
        # Another run does not mix its files with these.
        before = sorted(os.listdir(self.folder))
        self.assertIn("ends.json", before)
        done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn("holds files of an earlier run, such as '", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_a_folder_that_others_may_write_is_refused_before_the_program_starts(self):
        os.chmod(self.folder, 0o777)
        words = [sapwood(), "trace", "why", "--events-folder", self.folder, "--", *LAUNCHERS[self.abi], "2",
                 test_program(self.abi, "solver")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn("may be written by all users (mode 777)", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class Mpich(FolderTruth, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

"""Watches MPI programs by `sapwood.scope`, from Python: figures, errors, and what is left.

Needs the environment that watched.py names; `make truth` sets it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import turns
from marks import MARK, end_what_is_left, new_mark
from paced import Paced
from recorded import RecordedRun
from watched import HERE, LAUNCHERS, RUN_SECONDS_MAX, has_mpi, library_folder, sapwood, test_program

sys.path.insert(0, os.path.join(HERE, "..", "..", "python", "python"))

from sapwood import errors  # noqa: E402
from sapwood.scope import STATISTICS, Scope, ask, watch  # noqa: E402

RANKS = 2


class PythonScopes(unittest.TestCase):
    """Of Open MPI: what differs between MPIs is tested of the command."""

    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no openmpi here")
        folder = tempfile.TemporaryDirectory(prefix="sapwood-mpi-scopes-")
        self.addCleanup(folder.cleanup)
        self.notes = os.path.join(folder.name, "notes")
        self.mark = new_mark()
        before = dict(os.environ)
        os.environ.update({MARK: self.mark, "PYTHONPATH": library_folder(),
                           "PATH": f"{os.path.dirname(sapwood())}{os.pathsep}{os.environ['PATH']}"})
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        self.addCleanup(lambda: self.assertEqual(end_what_is_left(self.mark), []))
        # A wait that hangs ends the test program.
        signal.alarm(RUN_SECONDS_MAX)
        self.addCleanup(signal.alarm, 0)

    def command(self, case):
        return [*LAUNCHERS["openmpi"], str(RANKS), test_program("openmpi", "waits"), case, self.notes]

    def test_the_calls_of_each_rank_are_counted(self):
        scopes = [Scope(name="world", kinds="collective", communicators=["MPI_COMM_WORLD"], by=["rank", "communicator"]),
                  Scope(name="long", longer=3600, every="end")]
        with watch(self.command("collectives"), *scopes) as run:
            gatherings = list(run)
            self.assertEqual(run.code, 0)
        calls = {}
        for gathering in gatherings:
            for group in gathering.groups:
                self.assertEqual((gathering.scope, group.communicator), ("world", "MPI_COMM_WORLD"))
                self.assertLessEqual(0, group.min)
                self.assertLessEqual(group.min, group.mean)
                self.assertLessEqual(group.mean, group.max)
                self.assertAlmostEqual(group.sum, group.mean * group.count, places=9)
                calls[group.rank] = calls.get(group.rank, 0) + group.count
        # 20 rounds of 6 collectives.
        self.assertEqual(calls, dict.fromkeys(range(RANKS), 120))
        self.assertEqual({gathering.scope for gathering in gatherings if gathering.is_last}, {"world", "long"})

    def test_a_reduction_is_chosen(self):
        scopes = [Scope(name="sums", reduce="sums", by="rank", every="end"),
                  Scope(name="largest", reduce="top=1", by=("rank", "function"), every="end")]
        with watch(self.command("collectives"), *scopes) as run:
            sums, largest = sorted(run, key=lambda gathering: gathering.scope, reverse=True)
            self.assertEqual(run.code, 0)
        self.assertEqual({group.rank: (group.median, group.p99) for group in sums.groups},
                         dict.fromkeys(range(RANKS), (None, None)))
        self.assertEqual(sorted(group.is_others for group in largest.groups), [False, True])
        for group in largest.groups:
            self.assertTrue(group.min <= group.median <= group.p99 <= group.max, group)
        self.assertEqual(sum(group.count for group in largest.groups), sum(group.count for group in sums.groups))

    def test_figures_come_while_the_program_runs(self):
        with Paced("openmpi", RANKS) as paced, watch(paced.command, Scope(by="rank", every=0.1)) as run:
            for gathering in run:
                if len(gathering.groups) == RANKS and not gathering.is_last and run.code is None:
                    break
            else:
                self.fail("no figures of both ranks before the end")
            paced.end()
            self.assertEqual(run.wait(), 0)
            self.assertTrue(list(run)[-1].is_last)

    def test_what_is_left_running_ends_with_the_block(self):
        with Paced("openmpi", RANKS) as paced:
            with watch(paced.command, STATISTICS) as run:
                next(gathering for gathering in run if gathering.groups)
            self.assertIsNotNone(run.code)
            self.assertEqual(end_what_is_left(self.mark), [])

    def test_the_code_is_the_programs(self):
        with watch([*LAUNCHERS["openmpi"], "1", "sh", "-c", "exit 7"]) as run:
            self.assertEqual(run.wait(), 7)

    def test_a_program_that_is_watched_already_is_asked(self):
        told = []

        def act(run):
            job = f"mpi-{run.process.pid}"

            def gathered():
                with contextlib.suppress(errors.SystemError):
                    found = ask(Scope(name="ranks", by="rank"), job=job)
                    return found if found[0].groups else None

            paced.wait_for_ranks(run)
            told.append(run.wait_for("figures", gathered))
            told.append(ask(Scope(by="rank", every=0.1), job=job, seconds=3.0))
            paced.end()

        with Paced("openmpi", RANKS) as paced:
            RecordedRun(paced.command, "--waits", "--interval", "100ms", "--quiet", while_running=act, out=False)
        once, repeated = told
        self.assertEqual(([one.scope for one in once], once[0].ranks), (["ranks"], RANKS))
        self.assertGreaterEqual(len(repeated), 2)

    def test_what_makes_no_sense_is_an_error_before_the_program_starts(self):
        for scope, what in [(Scope(by="host"), "'host' is none of rank, function"), (Scope(window=0), "window"),
                            (Scope(functions="MPI_Nothing"), "no function is called 'MPI_Nothing'"),
                            (Scope(every=0.001), "50 ms"), (Scope(when="never"), "'never' is none of any, waiting"),
                            (Scope(reduce="top=0"), "'top=0' is none of sketch, sums, top=K with K from 1 to 100"),
                            (Scope(cpu=2.0), "from 0.001% to 100%"), (Scope(longer=-1.0), "not a time")]:
            with self.assertRaises(ValueError) as raised:
                watch(["false"], scope)
            self.assertIsInstance(raised.exception, errors.ScopeError)
            self.assertIn(what, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))
        with self.assertRaises(errors.ScopeError):
            watch([], STATISTICS)
        with self.assertRaisesRegex(errors.SystemError, "mpi-1"):
            ask(job="mpi-1")

    def test_scopes_are_read_on_the_command_line_too(self):
        scope = Scope(name="slow", functions=["MPI_All*", "MPI_Barrier"], ranks=[0, 1], longer=1e-4, by=("rank", "kind"),
                      every=2, window=9, cpu=0.015, bytes=65536, when="released", value="gap",
                      reduce="top=10")
        words = [f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in scope.document().items()]
        done = subprocess.run([sapwood(), "trace", "scope", "--check", "--scope", " ".join(words)],
                              capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

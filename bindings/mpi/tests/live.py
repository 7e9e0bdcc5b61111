"""Looks at the sheets of waits of `--live`, on a terminal, while a program runs of which one rank is slow.

Needs the environment that watched.py names; `make truth` sets it.
"""

import os
import subprocess
import tempfile
import unittest

import turns
import watched
from paced import Paced
from terminal import OnTerminal
from watched import LAUNCHERS, OneMpi, sapwood, test_program

# Rank 1 comes last and others do not: it has the first line of the sheet.
HEADING = r"^ *rank +last +share v +made wait +of all +waited$"
SLOW_RANK = r"^ +1 +[\d,]+ +(\d\d|100)\.\d % +[\d.]+ m?s +(\d\d|100)\.\d % "
OTHER_RANK = r"^ +0 +[\d,]+ +\d+\.\d % +[\d.]+ [mun]?s +\d+\.\d % +[\d.]+ m?s$"
SLOW_CALL = r"^MPI_Allreduce +MPI_COMM_WORLD +[\d.]+ m?s +\d\d\.\d % +([\d,]+)  rank 1 \(([\d,]+) of ([\d,]+)\)$"
# How many of how many.
DROPPED = r"^dropped: ([\d,]+) of ([\d,]+) events were overwritten before they were read; SAPWOOD_MPI_RING_BYTES "


class LiveWaits(OneMpi):
    """The sheets, for one MPI."""

    ranks = 4

    def launch(self, *program):
        return [*LAUNCHERS[self.abi], str(self.ranks), *program]

    def slow_rank(self):
        return self.launch(test_program(self.abi, os.path.join("culprits", "slow_rank")))

    def check_call(self, run):
        found = run.shown(SLOW_CALL)
        matched, last, of = (int(number.replace(",", "")) for number in found.groups())
        self.assertEqual(matched, of, found[0])
        self.assertGreater(2 * last, of, found[0])

    @turns.alone(turns.LATENESS)
    def test_why_shows_who_comes_last_and_where_time_is_lost(self):
        words = [sapwood(), "trace", "why", "--live", "--interval", "100ms", "--", *self.slow_rank()]
        with OnTerminal(words) as run:
            run.shown(HEADING)
            run.shown(SLOW_RANK)
            run.shown(OTHER_RANK)
            run.press("6")
            run.shown(r"^keys: .*\[6\] >waits by call<")
            self.check_call(run)
            # The view goes, and the program runs on until it is told to end.
            run.press("q")
            while any("waits by call" in line for line in run.screen.lines()):
                self.assertTrue(run.read())
            run.press("\x03")
            # A launcher that is told to end may end with any code.
            run.wait()
            lines = run.screen.lines()
        self.assertTrue(any(line.startswith("sapwood: 1. MPI_Allreduce on MPI_COMM_WORLD: ") for line in lines), lines)

    @turns.alone(turns.LATENESS)
    def test_the_view_of_sapwood_mpi_has_the_same_sheets(self):
        words = [sapwood(), "mpi", "--live", "--waits", "--interval", "100ms", "--", *self.slow_rank()]
        with OnTerminal(words) as run:
            run.shown(r"^keys: \[1\] >events<")
            run.press("5")
            run.shown(HEADING)
            run.shown(SLOW_RANK)
            run.press("\t")
            self.check_call(run)
            run.press("\x03")
            # A launcher that is told to end may end with any code.
            run.wait()

    def test_events_that_were_overwritten_before_they_were_read_are_told_in_one_line(self):
        # Of each thread 128 records are kept, and barriers come without a pause.
        with tempfile.TemporaryDirectory() as notes:
            program = [test_program(self.abi, "waits"), "many", os.path.join(notes, "notes"), "100000000"]
            words = [sapwood(), "mpi", "--live", "--waits", "--interval", "2s", "--", *self.launch(*program)]
            with OnTerminal(words, environment={"SAPWOOD_MPI_RING_BYTES": "4096"}) as run:
                dropped, of = (int(number.replace(",", "")) for number in run.shown(DROPPED).groups())
                self.assertLess(dropped, of)
                run.press("5")
                run.shown(r"^keys: .*\[5\] >waits by rank<")
                told = [line for line in run.screen.lines() if line.startswith("dropped: ")]
                self.assertEqual(len(told), 1, run.screen.lines())
                run.press("\x03")
                # A launcher that is told to end may end with any code.
                run.wait()

    def test_waits_that_are_not_recorded_are_said(self):
        with Paced(self.abi, self.ranks) as paced:
            words = [sapwood(), "mpi", "--live", "--interval", "100ms", "--", *paced.command]
            with OnTerminal(words) as run:
                run.shown(r"^MPI_Allreduce")
                run.press("6")
                run.shown(r"^no waits were recorded yet; --waits records them$")
                paced.end()
                self.assertEqual(run.wait(), 0)

    def test_why_without_a_terminal_says_so_and_goes_on(self):
        words = [sapwood(), "trace", "why", "--live", "--", *self.launch(test_program(self.abi, "solver"))]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        told = [line for line in lines if "--live needs a terminal" in line]
        self.assertEqual(len(told), 1, done.stderr)
        self.assertTrue(any(line.startswith(f"sapwood: solver: {self.ranks} ranks, ") for line in lines), lines)


class OpenMpi(LiveWaits, unittest.TestCase):
    abi = "openmpi"


class Mpich(LiveWaits, unittest.TestCase):
    abi = "mpich"
    # As in truth.py.
    ranks = 2


class BadInput(unittest.TestCase):
    def test_a_job_that_runs_already_has_no_view(self):
        done = subprocess.run([sapwood(), "trace", "why", "--live"], capture_output=True, text=True, check=False,
                              timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("a COMMAND is missing", done.stderr)


load_tests = turns.load_tests

if __name__ == "__main__":
    watched.sapwood(), watched.library_folder()
    unittest.main()

"""Runs the commands of the guide's chapter on waits, and compares what they print with what the page shows.

The words of a command are those of the page, but for where its programs are, and for the name of a running job. Times,
shares and numbers of calls may be others than on the page. The command for PyTorch is run by torch_why.py.

Needs the environment that watched.py names; `make truth` sets it.
"""

import os
import re
import shlex
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

import turns
import watched
from freeze import has_rounds
from shown import shown_commands
from watched import HERE, LAUNCHERS, Watched, has_mpi, sapwood, test_program, words_until
from why import SLOW_SECONDS

PAGE = os.path.join(HERE, "..", "..", "..", "docs", "guide", "waits.md")
HANGS = "sapwood trace why -- mpirun -np 5 early_break"
LAGS = "sapwood trace why -- mpirun -np 4 slow_rank"
FROZEN = "sapwood trace freeze --svg job.svg --perfetto job.pftrace -- mpirun -np 4 slow_rank"
ASKED = "sapwood trace freeze --job mpi-4711 --last 2s"
OF_PYTORCH = "sapwood trace why -- mpirun -np 3 python3 -m sapwood.torch parallel.py"
PROGRAMS = ("early_break", "slow_rank")
# What differs from run to run, and what stands for it.
MEASURED = (
    (r"[\d.,]+ (?:ns|us|ms|s)\b", "TIME"),
    # Of several ranks one time is told, or the shortest and the longest if these are told differently.
    ("TIME to TIME", "TIME"),
    (r"[\d.,]+ %", "SHARE"),
    (r"[\d,]+ times of [\d,]+", "COUNT times of COUNT"),
    (r"(?:mostly )?in [\d,]+(?= calls|:)", "in COUNT"),
)


def commands_of_page():
    """The commands of the chapter, each with the lines that it prints there."""
    with open(PAGE, encoding="utf-8") as file:
        shown = shown_commands(file.read())
    return {one.text: [line for line in one.printed if line.startswith("sapwood:")] for one in shown}


def in_one_form(lines):
    """The monitor's lines as one text, whatever was measured and wherever lines were broken."""
    own = [line.removeprefix("sapwood:").strip() for line in lines if line.startswith("sapwood:")]
    text = " ".join(own)
    for pattern, mark in MEASURED:
        text = re.sub(pattern, mark, text)
    return text


def statements_of(lines):
    """Lines of a page in groups: each begins with a line that is not indented."""
    groups = []
    for line in lines:
        if not line.startswith("sapwood:  ") or not groups:
            groups.append([])
        groups[-1].append(line)
    return [in_one_form(group) for group in groups]


def words_of(command, job=None):
    """The words that run a command of the page here."""
    words = []
    for word in shlex.split(command):
        if word == "sapwood":
            words.append(sapwood())
        elif word == "mpirun":
            # The page gives the number of ranks by itself.
            words.extend(LAUNCHERS["openmpi"][:-1])
        elif word in PROGRAMS:
            words.append(test_program("openmpi", os.path.join("culprits", word)))
        else:
            words.append(job if job and word.startswith("mpi-") else word)
    return words


class PageRun(Watched):
    """A run of a command of the page: `made` are the files that it leaves in its folder."""

    def __init__(self, command, while_running):
        self.own_words = words_of(command)
        super().__init__([], out=False, while_running=while_running)

    def execute(self, words, environment, while_running):
        super().execute(self.own_words, environment, while_running)
        self.made = {}
        for entry in os.scandir(self.folder):
            if entry.is_file():
                with open(entry.path, "rb") as file:
                    self.made[entry.name] = file.read()


class Page(unittest.TestCase):
    def test_each_command_of_the_chapter_is_run(self):
        self.assertEqual(set(commands_of_page()), {HANGS, LAGS, FROZEN, ASKED, OF_PYTORCH})


@turns.alone(turns.LATENESS)
class Chapter(unittest.TestCase):
    def setUp(self):
        if not has_mpi("openmpi"):
            self.skipTest("no Open MPI here")

    def check_printed(self, command, printed):
        """What a command has printed holds each statement of the page."""
        statements = statements_of(commands_of_page()[command])
        self.assertTrue(statements, command)
        for statement in statements:
            self.assertIn(statement, in_one_form(printed.splitlines()), printed)

    def test_a_job_that_hangs(self):
        told = []

        def act(run):
            told.append(words_until(run, "waiting: ranks 2,4 "))
            run.process.send_signal(signal.SIGINT)

        run = PageRun(HANGS, act)
        self.check_printed(HANGS, told[0] + run.errors)

    def test_a_job_that_lags(self):
        def act(run):
            time.sleep(SLOW_SECONDS)
            run.process.send_signal(signal.SIGINT)

        run = PageRun(LAGS, act)
        self.check_printed(LAGS, run.errors)

    def test_a_job_is_frozen_into_files(self):
        def act(run):
            run.wait_for("collectives", lambda: has_rounds(run))
            run.process.send_signal(signal.SIGINT)

        made = PageRun(FROZEN, act).made
        self.assertEqual(sorted(made), ["job.pftrace", "job.svg"])
        self.assertTrue(xml.etree.ElementTree.fromstring(made["job.svg"].decode()).tag.endswith("svg"))
        self.assertIn(b"MPI_Allreduce", made["job.pftrace"])

    def test_a_job_that_runs_is_frozen(self):
        tables = []

        def table(run):
            words = words_of(ASKED, f"mpi-{run.process.pid}")
            done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX, check=False)
            return done.stdout if done.returncode == 0 and "MPI_Allreduce" in done.stdout else None

        def act(run):
            tables.append(run.wait_for("a table", lambda: table(run)))
            run.process.send_signal(signal.SIGTERM)

        slow_rank = words_of(LAGS)[4:]
        Watched(slow_rank, "--quiet", "--waits", "--interval", "200ms", out=False, while_running=act)
        self.assertIn("MPI_COMM_WORLD  MPI_Allreduce", tables[0])


load_tests = turns.load_tests

if __name__ == "__main__":
    watched.sapwood(), watched.library_folder()
    unittest.main()

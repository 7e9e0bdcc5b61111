"""Where ranks are: `sapwood stacks` on jobs with and without `sapwood mpi`, `--stacks`, and what
becomes of programs whose reader is killed. Then `sapwood mpi attach`, against runs beside the job.

Needs the environment that watched.py names; `sapwood-stacks` is beside the command.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import turns
from marks import MARK, end_what_is_left, kill, marked, new_mark
from watched import (LAUNCHERS, SYSTEM_PYTHON, OneMpi, Watched, library_folder, sapwood, shim_of, test_program,
                     wait_until)

RANKS = 4
SECONDS_MAX = 90
# A question may last for as long as SECONDS_MAX, and has to be repeated where it got no answer.
LISTENS_SECONDS_MAX = 4 * SECONDS_MAX
TWO_THREADS = """
import threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print(flush=True)
time.sleep(600)
"""
PYTHON_PROGRAM = """
import os, sys, time
from mpi4py import MPI
def doze():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
def exchange():
    if MPI.COMM_WORLD.Get_rank() == 1:
        doze()
    MPI.COMM_WORLD.Barrier()
exchange()
"""


def reader():
    return os.path.join(os.path.dirname(sapwood()), "sapwood-stacks")


def stacks(*words, **options):
    return subprocess.run([sapwood(), "stacks", *words], capture_output=True, text=True, timeout=SECONDS_MAX, **options)


def tree(*words):
    """The tree of `sapwood stacks --json`, as a map from paths of frames to sets of ranks."""
    # Beside other work the first reading, which looks up all libraries, takes long.
    is_asked = not {"--pid", "--program"} & set(words)
    done = stacks("--json", *(["--timeout", str(SECONDS_MAX - 10)] if is_asked else []), *words)
    if done.returncode != 0:
        return None
    document = json.loads(done.stdout)
    assert document["schema"] == "sapwood.stacks/1", document
    return document["stacks"]


def paths(frames, above=()):
    for frame in frames:
        path = (*above, re.sub(r" [\[(].*", "", frame["name"]))
        yield path, frame["ranks"], frame["name"]
        yield from paths(frame["children"], path)


def ranks_in(section, name):
    """The ranks that are below a function, each set once."""
    found = [ranks for path, ranks, _ in paths(section["roots"]) if path[-1] == name]
    return found[0] if found else None


def state(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(") ", 1)[1][0]
    return None


def children(parent):
    """All processes below one, with their commands."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                above = int(file.read().rsplit(") ", 1)[1].split()[1])
            if above == parent:
                found += [int(pid), *children(int(pid))]
    return found


class Job:
    """A job that runs without `sapwood mpi`, until its stop file is there."""

    def __init__(self, abi, command, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="sapwood-mpi-stacks-")
        self.stop = os.path.join(self.folder.name, "stop")
        words = [*LAUNCHERS[abi], str(RANKS), *[word.replace("STOP", self.stop) for word in command]]
        self.mark = new_mark()
        told = {**os.environ, MARK: self.mark, **(environment or {})}
        self.process = subprocess.Popen(words, env=told, start_new_session=True, text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.name = os.path.basename(command[0])

    def pids(self):
        """The ranks' processes."""
        return sorted(pid for pid, command in marked(self.mark) if os.path.basename(command[0]) == self.name)

    def words(self):
        """The ranks as options of `sapwood stacks`."""
        return [word for pid in self.pids() for word in ("--pid", str(pid))]

    def end(self):
        """Lets the program go on; its exit code, output and errors."""
        open(self.stop, "x", encoding="utf-8").close()
        output, errors = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, output, errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            kill(pid for pid, _ in marked(self.mark))
            self.process.communicate()
            end_what_is_left(self.mark)
        self.folder.cleanup()


class Stacks(OneMpi):
    def still(self, environment=None):
        return Job(self.abi, [test_program(self.abi, "still"), "sleep", "STOP"], environment)

    def waits(self, job, *words):
        """The tree once rank 1 sleeps and the others wait for it."""
        seen = {}

        def found():
            seen["pids"] = job.pids()
            section = tree(*(words or job.words())) if len(seen["pids"]) == RANKS else None
            seen["tree"] = section
            fits = section and ranks_in(section, "wait_asleep") == "1" and ranks_in(section, "MPI_Barrier") == "0,2-3"
            return section if fits else None
        return wait_until("three ranks in a barrier", found, seen)

    def test_a_job_that_nothing_watches_is_read_with_files_and_lines(self):
        with self.still() as job:
            section = self.waits(job)
            names = [name for _, _, name in paths(section["roots"])]
            self.assertTrue(any(re.fullmatch(r"wait_asleep \(still\.c:\d+\)", name) for name in names), names)
            self.assertEqual(section["missing"], [])
            self.assertEqual(sum(len(list(expand(one["ranks"]))) for one in section["stopped"]), RANKS)
            folded = stacks("--folded", *job.words()).stdout.splitlines()
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded), RANKS, folded)
            text = stacks(*job.words()).stdout
            self.assertRegex(text, r"(?s)ranks 0-3 \(4\).*ranks 0,2-3 \(3\).*MPI_Barrier.*rank 1.*stopped for")
            self.assertEqual(job.end()[:2], (0, "the program is done\n"))

    def test_a_program_runs_on_when_its_reader_is_killed(self):
        with self.still() as job:
            self.waits(job)
            pid = job.pids()[0]
            holding = subprocess.Popen([reader(), "--pid", str(pid), "--hold", "60s"], stdout=subprocess.DEVNULL)
            wait_until("a rank that is stopped", lambda: state(pid) == "t")
            holding.kill()
            holding.wait()
            wait_until("a rank that runs on", lambda: state(pid) in ("R", "S"))
            self.assertEqual(job.end()[:2], (0, "the program is done\n"))

    def test_a_stopped_rank_is_read_named_and_stays_stopped(self):
        with self.still() as job:
            self.waits(job)
            pid = job.pids()[-1]
            os.kill(pid, signal.SIGSTOP)
            wait_until("a stopped rank", lambda: state(pid) == "T")
            section = tree(*job.words())
            self.assertEqual([note["reason"] for note in section["notes"]], ["stopped by a signal, and stays so until SIGCONT"])
            self.assertEqual(section["missing"], [])
            wait_until("a rank that is stopped again", lambda: state(pid) == "T")
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(job.end()[:2], (0, "the program is done\n"))

    def test_a_watched_job_is_asked_and_its_report_has_stacks(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-stacks-") as folder:
            stop = os.path.join(folder, "stop")

            def act(run):
                job = str(run.process.pid)
                self.found = run.wait_for("three ranks in a barrier", lambda: (
                    (section := tree(job)) and ranks_in(section, "wait_asleep") == "1"
                    and ranks_in(section, "MPI_Barrier") == "0,2-3" and section))
                # What is told of a run that hangs.
                self.whereabouts = run.whereabouts()
                open(stop, "x", encoding="utf-8").close()

            command = [*LAUNCHERS[self.abi], str(RANKS), test_program(self.abi, "still"), "sleep", stop]
            run = Watched(command, "--interval", "100ms", "--ranks-per-leaf", "1", "--fan-out", "2", while_running=act)
        self.assertEqual((run.code, run.output), (0, "the program is done\n"), run.errors)
        self.assertEqual(self.found["missing"], [])
        self.assertGreater(self.found["elapsed_s"], 0)
        self.assertEqual(ranks_in(run.profile["stacks"], "_start"), "0-3")
        self.assertIn("Call stacks at", run.errors)
        for word in ("wait_asleep", "MPI_Barrier"):
            self.assertIn(word, self.whereabouts)

    def attached(self, *words, wait=True):
        command = [sapwood(), "mpi", "attach", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process.communicate(timeout=SECONDS_MAX) if wait else process

    def wait_until_listening(self, watcher):
        """Waits until one that is attached answers with stacks of ranks. Where several read the same ranks, or find no
        processor, a question may get no answer or one without stacks, and is repeated."""
        said = {}

        def answers():
            done = stacks("--json", "--timeout", str(SECONDS_MAX - 10), str(watcher.pid))
            said.update(code=done.returncode, output=done.stdout, errors=done.stderr)
            if done.returncode != 0 and watcher.poll() is not None:
                self.fail(f"it ended with {watcher.returncode} before it was asked: {watcher.communicate()}")
            return done.returncode == 0

        wait_until("listening", answers, said, LISTENS_SECONDS_MAX)

    def test_a_job_that_is_attached_to_has_the_report_of_one_that_is_watched(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-stacks-") as folder:
            stop = os.path.join(folder, "stop")
            begun = lambda run: run.wait_for("ranks", lambda: len(run.processes("still")) == RANKS)
            command = [*LAUNCHERS[self.abi], str(RANKS), test_program(self.abi, "still"), "sleep", stop]
            act = lambda run: begun(run) and open(stop, "x", encoding="utf-8").close()
            beside = Watched(command, "--interval", "100ms", while_running=act)
            self.assertEqual(beside.code, 0, beside.errors)
            with self.still({"LD_PRELOAD": shim_of(self.abi)}) as job:
                self.waits(job)
                job_number, options = str(job.process.pid), ("--interval", "100ms")
                # Three at once: one is ended by the user, one from a rank, one to the end.
                early = self.attached("--pid", str(job.pids()[2]), *options, wait=False)
                first, second = [os.path.join(folder, name) for name in ("first", "second")]
                others = [self.attached(job_number, *options, "--quiet", "--out", out, wait=False) for out in (first, second)]
                connected = lambda: all(len(children(one.pid)) > 0 for one in (early, *others))
                wait_until("leaves", connected)
                self.wait_until_listening(early)
                early.send_signal(signal.SIGINT)
                output, errors = early.communicate(timeout=SECONDS_MAX)
                self.assertEqual((early.returncode, output), (0, ""), errors)
                self.assertIn("detached; the job runs on", errors)
                self.assertRegex(errors, r"ranks +4 of 4")
                for one in others:
                    self.wait_until_listening(one)
                self.assertEqual(job.end(), (0, "the program is done\n", ""))
                for one, out in zip(others, (first, second), strict=True):
                    output, errors = one.communicate(timeout=SECONDS_MAX)
                    self.assertEqual((output, one.returncode), ("", 0), errors)
                    # The rank sleeps all the time, which is told if that is long; whose stack is read is not stopped.
                    self.assertRegex(errors, r"^(sapwood: no MPI call has returned for [^\n]*; not arrived: rank 1 sleeping outside MPI, [^\n]*\n)*$")
                    with open(os.path.join(out, "profile.json"), encoding="utf-8") as file:
                        profile = json.load(file)
                    self.assertEqual(counts(profile), counts(beside.profile))
                    self.assertEqual(profile["states"], beside.profile["states"])
                    self.assertEqual((profile["missing"], profile["program"]), ([], "still"))
        gone = self.attached("--pid", job_number)
        self.assertRegex(gone[1], r"^sapwood: no such job runs on this host")

    def test_a_job_of_which_no_rank_has_reached_mpi_init_is_told_so(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-stacks-") as folder:
            go, said = os.path.join(folder, "go"), []

            def is_answered(run):
                done = stacks("--timeout", str(SECONDS_MAX - 10), str(run.process.pid))
                said[:] = [done.returncode, done.stdout, done.stderr]
                # Until it listens there is no such job.
                return done.returncode == 125

            def ask(run):
                try:
                    wait_until("an answer of the job", lambda: is_answered(run), said)
                finally:
                    with open(go, "w", encoding="utf-8"):
                        pass

            script = 'until [ -e "$1" ]; do sleep 0.05; done; exec "$2"'
            command = ["sh", "-c", script, "sh", go, test_program(self.abi, "solver")]
            run = Watched([*LAUNCHERS[self.abi], "2", *command], "--quiet", while_running=ask)
        self.assertEqual(run.code, 0, run.errors)
        self.assertIn("sapwood: no rank of the job has reached MPI_Init yet: ask again", said[2])


def counts(profile):
    """What of a report does not depend on time."""
    return [(event["name"], event["communicator_size_class"], event["ranks"], event["calls"], event["bytes"])
            for event in profile["events"]]


def expand(ranks):
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


class OpenMpi(Stacks, unittest.TestCase):
    abi = "openmpi"

    def test_a_process_in_an_uninterruptible_call_is_named(self):
        process = subprocess.Popen([os.path.join(library_folder(), "tests", "uninterruptible"), "20"])
        try:
            wait_until("state D", lambda: state(process.pid) == "D")
            done = stacks("--pid", str(process.pid))
            self.assertEqual(done.returncode, 125)
            self.assertIn("no stack of rank 0: it is in a system call that cannot be interrupted (state D)", done.stdout)
            self.assertEqual(state(process.pid), "D")
        finally:
            for pid in [*children(process.pid), process.pid]:
                os.kill(pid, signal.SIGKILL)
            process.wait()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_a_process_of_another_user_is_named(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-stacks-") as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(reader(), folder)
            done = subprocess.run([program, "--pid", str(os.getpid())], capture_output=True, text=True, user=65534,
                                  timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("its process is of user 0, not of yours (65534); run this as that user", done.stdout)

    def test_all_threads_are_read_where_that_is_asked_for(self):
        def count(frames):
            return sum(count(frame["children"]) or 1 for frame in frames)
        with subprocess.Popen([SYSTEM_PYTHON, "-c", TWO_THREADS], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                words = ("--pid", str(process.pid))
                found = [count(tree(*words, *further)["roots"]) for further in ((), ("--all-threads",))]
            finally:
                process.kill()
        self.assertEqual(found, [1, 2])

    def test_python_frames_stand_among_native_ones(self):
        with Job(self.abi, [SYSTEM_PYTHON, "-c", PYTHON_PROGRAM, "STOP"]) as job:
            def found():
                section = tree(*job.words()) if len(job.pids()) == RANKS else None
                return section if section and ranks_in(section, "doze") == "1" and ranks_in(section, "MPI_Barrier") == "0,2-3" else None
            section = wait_until("a Python program that waits", found)
            [barrier] = [path for path, _, _ in paths(section["roots"]) if path[-1] == "MPI_Barrier"]
            python = [name for name in barrier if name in ("<module>", "exchange")]
            self.assertEqual(python, ["<module>", "exchange"], barrier)
            self.assertFalse([name for name in barrier if "_PyEval" in name], barrier)
            self.assertEqual(job.end()[0], 0)


class Mpich(Stacks, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

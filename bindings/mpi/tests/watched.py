"""Runs `sapwood mpi` on MPI programs for the tests, with a deadline, and leaves nothing running.

Where the command is and where the shims and test programs were built comes from the environment:
SAPWOOD (the program), SAPWOOD_LIB_DIR (the Makefile's OUT) and RANK_ROWS (the reader of
ranks.parquet, an example of the command's crate; without it no rows are read). On the test bed,
MPIRUN_OPENMPI has the words that start a job of Open MPI over several hosts. Nothing else of the
caller's settings reaches a program of these tests.
"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(HERE, "..", "..", "..", folder) for folder in ("testbed", "conformance"))]
sys.dont_write_bytecode = True

import prerequisites
import surroundings
import turns  # noqa: F401  Its setting is read before it is taken out.
from marks import GONE_SECONDS_MAX, MARK, LeftBehind, end_what_is_left, is_of_rank, kill, marked, new_mark, states
from rank_profile import Profile

surroundings.keep_only("SAPWOOD", "SAPWOOD_BENCH", "SAPWOOD_LIB_DIR", "RANK_ROWS", "MPIRUN_OPENMPI", **surroundings.MPI,
                       **surroundings.runtime_folder())

RUN_SECONDS_MAX = 120
COMPILE_SECONDS_MAX = 60
# For the call stacks of ranks that hang, which the machine may give no processor to read.
STACKS_SECONDS_MAX = 60
LOOKS_AGAIN_SECONDS = 0.02
SYSTEM_PYTHON = "/usr/bin/python3"
# Writes a line at once: what a rank writes in pieces, launchers mix with that of others.
SAY_HERE = "import os; os.write(1, b'here\\n')"
ON_HOSTS = "MPIRUN_OPENMPI" in os.environ
LAUNCHERS = {
    "openmpi": [*os.environ.get("MPIRUN_OPENMPI", "mpirun.openmpi --allow-run-as-root --oversubscribe").split(), "-np"],
    "mpich": ["mpirun.mpich", "-np"],
}


def sapwood():
    return os.path.abspath(os.environ["SAPWOOD"])


def library_folder():
    return os.path.abspath(os.environ["SAPWOOD_LIB_DIR"])


def shim_of(abi):
    return os.path.join(library_folder(), f"libsapwood-mpi-{abi}.so")


def has_mpi(abi):
    """Whether this MPI and its shim are here."""
    return prerequisites.has_mpi(LAUNCHERS[abi][0], shim_of(abi))


def test_program(abi, name):
    return os.path.join(library_folder(), "tests", abi, name)


def compile_text(abi, text, program):
    """Makes a program of a text in C."""
    subprocess.run([f"mpicc.{abi}", "-x", "c", "-o", program, "-"], input=text, text=True, check=True,
                   timeout=COMPILE_SECONDS_MAX)


class OneMpi:
    """Tests for one MPI, which a subclass names; they are skipped where it is not."""

    abi = None

    @classmethod
    def setUpClass(cls):
        prerequisites.require_mpi(cls.abi, LAUNCHERS[cls.abi][0], shim_of(cls.abi))


@contextlib.contextmanager
def interruptible():
    """A background job of a shell ignores interrupts, and so would all that is started meanwhile."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Hang(AssertionError):
    """A run that had to be ended at its deadline."""


def wait_until(what, condition, seen=None, seconds_max=RUN_SECONDS_MAX):
    """Waits until a condition gives something, and gives it; a hang tells what was seen last."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(LOOKS_AGAIN_SECONDS)
    raise Hang(f"waited for {what}" + ("" if seen is None else f"; last seen: {seen}"))


def whole_lines(path):
    """The records of a file that grows."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]
    return []


def words_until(run, *wanted):
    """What a run writes to standard error until there are words of each of these forms."""
    errors, deadline = run.process.stderr.fileno(), time.monotonic() + RUN_SECONDS_MAX
    told = b""
    # A letter of several bytes may come in parts.
    while not all(re.search(form, told.decode(errors="replace")) for form in wanted):
        if not select.select([errors], [], [], max(0, deadline - time.monotonic()))[0]:
            raise Hang(f"waited for {wanted}, but only read: {told.decode(errors='replace')}")
        more = os.read(errors, 65536)
        if not more:
            raise AssertionError(f"the run ended without {wanted}: {told.decode(errors='replace')}")
        told += more
    return told.decode(errors="replace")


@contextlib.contextmanager
def preloaded(abi, command, **settings):
    """A job with the shim alone, which nothing watches: its process and its mark. What is left of it is killed."""
    mark = new_mark()
    job = subprocess.Popen(command, env={**os.environ, MARK: mark, "LD_PRELOAD": shim_of(abi), **settings},
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield job, mark
    finally:
        kill(pid for pid, _ in marked(mark))
        job.wait()
        end_what_is_left(mark)


def whereabouts(mark):
    """What each process of a run does, and the call stacks of its ranks: MPICH's run while they wait, too."""
    told = [states(mark)]
    ranks = [word for pid, command in marked(mark) if is_of_rank(command) for word in ("--pid", str(pid))]
    if ranks:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            words = [sapwood(), "stacks", *ranks]
            read = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                                  timeout=STACKS_SECONDS_MAX)
            told += [read.stdout, read.stderr]
    return "\n".join(told)


class Watched:
    """One run of `sapwood mpi`: `code`, `output`, `errors`, and what it left.

    `profile` is profile.json or None, `report` report.txt, `rounds` the records of rounds.ndjson, `rows` the rows of ranks.parquet as lists of text,
    `dumps` what each rank wrote by itself. `while_running` is called with the run, once it has
    started, to do it harm.
    """

    def __init__(self, command, *options, environment=None, while_running=None, out=True, dashes=True):
        self.mark = new_mark()
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-watched-") as folder:
            self.folder = folder
            self.out = os.path.join(folder, "out")
            dumps = os.path.join(folder, "dumps")
            os.mkdir(dumps)
            words = [sapwood(), "mpi", *options, *(["--out", self.out] if out else []), *["--"][:dashes], *command]
            told = {MARK: self.mark, "SAPWOOD_MPI_DUMP_DIR": dumps, "PYTHONPATH": library_folder(),
                    **(environment or {})}
            with interruptible():
                self.execute(words, {**os.environ, **told}, while_running)
            self.profile = self.read_profile()
            self.report = self.read_report()
            self.rows = self.read_rows()
            self.rounds = self.read_rounds()
            self.dumps = {}
            # A rank that is killed while it writes leaves a part under a hidden name; one that records, its events too.
            for name in os.listdir(dumps):
                if name.startswith(".") or not name.endswith(".profile"):
                    continue
                with open(os.path.join(dumps, name), "rb") as file:
                    profile = Profile(file.read())
                self.dumps[profile.rank] = profile

    def execute(self, words, environment, while_running):
        self.process = subprocess.Popen(words, env=environment, cwd=self.folder, start_new_session=True, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if while_running is not None:
                while_running(self)
            self.output, self.errors = self.process.communicate(timeout=RUN_SECONDS_MAX)
            self.code = self.process.returncode
        except subprocess.TimeoutExpired:
            raise Hang(f"hung for {RUN_SECONDS_MAX} s: {' '.join(words)}\n{self.whereabouts()}") from None
        except Hang as hang:
            hang.add_note(self.whereabouts())
            raise
        finally:
            self.process.kill() if self.process.poll() is None else None
            self.process.wait()
            left = end_what_is_left(self.mark)
        if left:
            raise LeftBehind(f"left running by {' '.join(words)}: {left}")

    def wait_for(self, what, condition, seen=None):
        """Waits until a condition on this run gives something, and gives it; a hang tells what was seen last."""
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := condition():
                return found
            time.sleep(LOOKS_AGAIN_SECONDS)
        if self.process.poll() is not None:
            _, errors = self.process.communicate(timeout=GONE_SECONDS_MAX)
            raise Hang(f"ended with {self.process.returncode} before {what}: {errors}")
        raise Hang(f"waited for {what}" + ("" if seen is None else f"; last seen: {seen}"))

    def whereabouts(self):
        """What each of its processes does."""
        return whereabouts(self.mark)

    def processes(self, *words):
        """Pids of this run's processes whose first arguments are these, by the file's name."""
        def fits(command):
            return [os.path.basename(command[0]), *command[1:]][: len(words)] == list(words)
        return sorted(pid for pid, command in marked(self.mark) if fits(command))

    def read_profile(self):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.out, "profile.json"), encoding="utf-8") as file:
            return json.load(file)
        return None

    def read_report(self):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.out, "report.txt"), encoding="utf-8") as file:
            return file.read()
        return None

    def read_rounds(self):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.out, "rounds.ndjson"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
        return []

    def read_rows(self):
        file = os.path.join(self.out, "ranks.parquet")
        if not os.path.exists(file) or "RANK_ROWS" not in os.environ:
            return None
        done = subprocess.run([os.path.abspath(os.environ["RANK_ROWS"]), file], capture_output=True, text=True,
                              check=True, timeout=RUN_SECONDS_MAX)
        return [line.split("\t") for line in done.stdout.splitlines()]


def watch_until(wanted, act, command, *options, **more):
    """A run to which `act` does something once it has written words of each of these forms to standard error. `errors`
    has these, too."""
    told = []

    def read_and_act(run):
        told.append(words_until(run, *wanted))
        act(run, told[0])

    run = Watched(command, *options, while_running=read_and_act, **more)
    run.errors = told[0] + run.errors
    return run

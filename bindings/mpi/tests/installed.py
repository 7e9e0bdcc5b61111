"""What `make install` leaves: `sapwood mpi` finds its shims there, and programs build with the region library.

Needs the environment that watched.py names; `make truth` sets it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import turns
import watched
from watched import HERE, LAUNCHERS, has_mpi, library_folder, sapwood, test_program

PREFIX = "opt/sapwood"
REGION = """
#include <sapwood_mpi.h>
int main(void) { sapwood_region_begin("solve"); sapwood_region_end("solve"); return 0; }
"""


FORTRAN_REGION = """
program solve
  {use}
  call sapwood_region_begin("solve")
  call sapwood_region_end("solve")
end program solve
"""
PYTHON_REGION = "from sapwood_region import region\nwith region('solve'): pass"


def succeed(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=watched.RUN_SECONDS_MAX, check=False, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


class Installed(unittest.TestCase):
    """A tree below another folder, as a package builder makes it."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-"))
        succeed(["make", "-s", "-C", os.path.join(HERE, ".."), "install", f"OUT={library_folder()}", f"DESTDIR={folder}",
                 f"PREFIX=/{PREFIX}"])
        cls.prefix = os.path.join(folder, PREFIX)
        os.mkdir(os.path.join(cls.prefix, "bin"))
        for name in ("sapwood", "sapwood-node"):
            shutil.copy(os.path.join(os.path.dirname(sapwood()), name), os.path.join(cls.prefix, "bin"))

    def watch(self, abi):
        if not has_mpi(abi):
            self.skipTest(f"no {abi} here")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SAPWOOD")}
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-") as folder:
            out = os.path.join(folder, "out")
            succeed([os.path.join(self.prefix, "bin", "sapwood"), "mpi", "--quiet", "--out", out, "--",
                     *LAUNCHERS[abi], "2", test_program(abi, "solver")], env=environment, cwd=folder)
            with open(os.path.join(out, "profile.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["ranks_covered"], 2)

    def test_a_program_of_open_mpi_is_watched(self):
        self.watch("openmpi")

    def test_a_program_of_mpich_is_watched(self):
        self.watch("mpich")

    def test_a_program_is_asked_why(self):
        if not has_mpi("openmpi"):
            self.skipTest("no openmpi here")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SAPWOOD")}
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-") as folder:
            file = os.path.join(folder, "why.json")
            succeed([os.path.join(self.prefix, "bin", "sapwood"), "trace", "why", "--json", file, "--",
                     *LAUNCHERS["openmpi"], "2", test_program("openmpi", "solver")], env=environment, cwd=folder)
            with open(file, encoding="utf-8") as written:
                self.assertEqual(json.load(written)["schema"], "sapwood.why/1")

    def test_regions_of_fortran_link_with_and_without_the_module(self):
        compiler = shutil.which("gfortran")
        if compiler is None:
            self.skipTest("no gfortran here")
        libraries = os.path.join(self.prefix, "lib")
        module = os.path.join(libraries, "sapwood", "sapwood_region.f90")
        for use, before in (("", []), ("use sapwood_region", [module])):
            with self.subTest(use=use), tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-") as folder:
                source, program = os.path.join(folder, "solve.f90"), os.path.join(folder, "solve")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(FORTRAN_REGION.format(use=use))
                succeed([compiler, "-o", program, *before, source, f"-L{libraries}", "-lsapwood-region",
                         f"-Wl,-rpath,{libraries}"], cwd=folder)
                self.assertEqual(succeed([program]), "")

    def test_regions_of_python_are_imported(self):
        path = {"PYTHONPATH": os.path.join(self.prefix, "lib", "sapwood")}
        self.assertEqual(succeed([sys.executable, "-c", PYTHON_REGION], env=os.environ | path), "")

    def test_a_program_builds_with_the_region_library(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-") as folder:
            source, program = os.path.join(folder, "region.c"), os.path.join(folder, "region")
            with open(source, "w", encoding="utf-8") as file:
                file.write(REGION)
            libraries = os.path.join(self.prefix, "lib")
            succeed(["cc", "-o", program, source, f"-I{self.prefix}/include", f"-L{libraries}", "-lsapwood-region",
                     f"-Wl,-rpath,{libraries}"])
            self.assertEqual(succeed([program]), "")


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

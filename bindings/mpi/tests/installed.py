"""What `make install` leaves: `sapwood mpi` finds its shims there, and programs build with the region library.

Needs the environment that watched.py names; `make truth` sets it.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import watched
from watched import HERE, LAUNCHERS, has_mpi, library_folder, sapwood, test_program

PREFIX = "opt/sapwood"
REGION = """
#include <sapwood_mpi.h>
int main(void) { sapwood_region_begin("solve"); sapwood_region_end("solve"); return 0; }
"""


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

    def test_a_program_builds_with_the_region_library(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-installed-") as folder:
            source, program = os.path.join(folder, "region.c"), os.path.join(folder, "region")
            with open(source, "w", encoding="utf-8") as file:
                file.write(REGION)
            libraries = os.path.join(self.prefix, "lib")
            succeed(["cc", "-o", program, source, f"-I{self.prefix}/include", f"-L{libraries}", "-lsapwood-region",
                     f"-Wl,-rpath,{libraries}"])
            self.assertEqual(succeed([program]), "")


if __name__ == "__main__":
    unittest.main()

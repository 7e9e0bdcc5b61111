"""Headers: each by itself, those of both languages together, and what they bring in, in every standard."""

import os
import pathlib
import shlex
import subprocess
import unittest

from harness import HERE, OUT

INCLUDE = HERE.parent / "include"
CXX_STANDARDS = ["c++11", "c++14", "c++17", "c++20"]
C_STANDARDS = ["c99", "c11"]

# What MRNet installs. Those for Windows are left out.
INSTALLED = {
    "mrnet": "CommunicationNode Communicator DataElement Error Event FilterIds MRNet Network NetworkTopology Packet "
             "ParadynFilterIds Stream Tree Types",
    "mrnet_lightweight": "DataElement Error FilterIds MRNet Network NetworkTopology Packet Stream Types",
    "xplat": "Atomic Error Monitor Mutex NetUtils Once PathUtils Process SharedObject SocketUtils TLSKey Thread "
             "Tokenizer Types Types-unix xplat_utils",
    "xplat_lightweight": "Error Monitor Mutex NetUtils PathUtils Process SocketUtils Thread Types Types-unix map "
                         "vector xplat_utils_lightweight",
}


def headers():
    """Each header with its language, as a tool names it."""
    for folder, names in INSTALLED.items():
        for name in names.split():
            yield f"{folder}/{name}.h", "c" if folder.endswith("lightweight") else "c++"


def compile_alone(header, language, standard):
    """Compiles a unit that has nothing but the header, strictly."""
    compiler = os.environ.get("CC", "cc") if language == "c" else os.environ.get("CXX", "c++")
    command = [compiler, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}",
               *shlex.split(os.environ.get("BOOST", "")), "-fsyntax-only", "-x", language, "-"]
    return subprocess.run(command, input=f'#include "{header}"\n', text=True, capture_output=True, timeout=300,
                          check=False)


class Headers(unittest.TestCase):
    def test_each_header_stands_by_itself_in_the_oldest_standard_and_the_newest(self):
        for header, language in headers():
            for standard in ["c++11", "c++20"] if language == "c++" else ["c99", "c++20"]:
                with self.subTest(header=header, standard=standard):
                    done = compile_alone(header, "c" if standard.startswith("c9") else "c++", standard)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_header_is_there_that_is_not_told_of(self):
        known = {header for header, _ in headers()} | {"mrnet_lightweight/Shared.h"}
        there = {str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h")}
        self.assertEqual(there, known)


class Programs(unittest.TestCase):
    def run_all(self, pattern, standards):
        sources = sorted((HERE / "headers").glob(pattern))
        self.assertNotEqual(sources, [])
        for source in sources:
            for standard in standards:
                program = OUT / "tests" / standard / pathlib.Path(*source.parts[-3:]).with_suffix("")
                with self.subTest(program=program.name, standard=standard):
                    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
                    self.assertEqual(done.returncode, 0, f"{source}:{done.returncode}: not so; {done.stderr}")

    def test_every_name_of_every_header_in_cpp_does_its_work(self):
        self.run_all("xplat/*.cpp", CXX_STANDARDS)

    def test_every_name_of_every_header_in_c_does_its_work(self):
        self.run_all("xplat_lightweight/*.c", C_STANDARDS)

    def test_units_of_several_headers(self):
        self.run_all("units/*.cpp", CXX_STANDARDS)
        self.run_all("units/*.c", C_STANDARDS)

    def test_every_header_of_xplat_has_its_program(self):
        for folder, suffix in [("xplat", ".cpp"), ("xplat_lightweight", ".c")]:
            programs = {path.stem for path in (HERE / "headers" / folder).glob(f"*{suffix}")}
            headers = {"lines" if "utils" in name and name.islower() else name for name in INSTALLED[folder].split()}
            self.assertEqual(programs, headers)


if __name__ == "__main__":
    unittest.main()

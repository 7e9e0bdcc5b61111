"""What `make install` leaves is what a tool's build finds by pkg-config alone, and it runs."""

import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import HERE, OUT, program
from test_headers import INSTALLED

ROOT = HERE.parent.parent.parent
PREFIX = "/opt/mrnet"
LIBRARIES = ["mrnet", "xplat", "mrnet_lightweight", "mrnet_lightweight_r", "xplat_lightweight", "xplat_lightweight_r",
             "sapwood"]
PROGRAMS = ["mrnet_commnode", "mrnet_topgen", "sapwood", "sapwood-node"]


def install(folder, *words):
    """Runs a `make install`, of what has been built."""
    command = ["make", "-C", str(folder), "-o", "build", "install", f"OUT={OUT}",
               f"SAPWOOD_LIBRARIES={os.environ['SAPWOOD_LIBRARIES']}", *words]
    # Without the variables and the jobs of the make that runs this test.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL, env=variables)


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class Installed(unittest.TestCase):
    """Tools that are built against an installation into an empty folder, which nothing else is in."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name) / "prefix"
        cls.tools = pathlib.Path(folder.name) / "tools"
        cls.tools.mkdir()
        install(ROOT, f"PREFIX={cls.folder}")

    def build(self, name, *words, shared=False):
        """A program of these tests as packages say: of archives alone, where there are any, if `--static` is
        among the words."""
        is_static = "--static" in words
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", *words], check=True, text=True, timeout=60,
                               stdout=subprocess.PIPE, env=self.variables()).stdout.split()
        archives = {path.name[3:-2]: path.name for path in (self.folder / "lib").glob("*.a")}
        if is_static:
            flags = [f"-l:{archives[flag[2:]]}" if flag[2:] in archives else flag for flag in flags]
        else:
            flags.append(f"-Wl,-rpath,{self.folder}/lib")
        flags += ["-shared", "-fPIC"] if shared else []
        built = self.tools / f"{pathlib.Path(name).name.replace('.', '-')}{''.join(words)}"
        compiler = [os.environ.get("CXX", "c++"), "-std=c++17"] if name.endswith(".cpp") else \
            [os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE"]
        subprocess.run([*compiler, str(HERE / name), *flags, "-o", str(built)], check=True, timeout=300)
        needed = subprocess.run(["ldd", str(built)], check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout
        self.assertEqual("libsapwood" in needed or "libmrnet" in needed, not is_static, needed)
        return built

    def variables(self):
        return {**os.environ, "PKG_CONFIG_LIBDIR": f"{self.folder}/lib/pkgconfig"}

    def topology(self, spec):
        """Made by the installed mrnet_topgen."""
        path = self.tools / f"{spec.replace(':', '-')}.top"
        subprocess.run([str(self.folder / "bin/mrnet_topgen"), "-t", spec, "-o", str(path)], check=True, text=True,
                       input="localhost:64\n", timeout=60)
        return path

    def good(self, wanted, tool, *arguments, environment=None):
        code, output, errors = harness.run(tool, *arguments, environment=environment)
        self.assertEqual((code, output.splitlines()[-1:]), (0, [wanted]), errors)

    def test_a_front_end_and_a_back_end(self):
        for words in [[], ["--static"]]:
            with self.subTest(words=words):
                tool, back_end = (self.build(f"programs/add_{name}.cpp", "mrnet", *words)
                                  for name in ["front_end", "back_end"])
                # A library has the programs beside it; archives have nothing.
                environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"} if words else None
                self.good("2 back-ends", tool, self.topology("b:1x2"), back_end, environment=environment)

    def test_a_back_end_in_c(self):
        front_end = self.build("programs/directives_front_end.cpp", "mrnet")
        for package, words in itertools.product(["mrnet_lightweight", "mrnet_lightweight_r"], [[], ["--static"]]):
            with self.subTest(package=package, words=words):
                back_end = self.build("programs/light_back_end.c", package, *words)
                code, output, errors = harness.run(front_end, self.topology("b:1x2"), back_end)
                self.assertEqual(code, 0, errors)
                self.assertIn("33 directives", output)

    def test_filters_of_a_shared_object(self):
        filters = self.build("filters/filters.cpp", "mrnet", shared=True)
        back_end = self.build("programs/back_end.cpp", "mrnet")
        for words in [[], ["--static"]]:
            with self.subTest(words=words):
                tool = self.build("programs/loaded_filters.cpp", "mrnet", *words)
                if words:  # The library that runs filters is looked for in ../lib.
                    tool = pathlib.Path(shutil.copy(tool, self.folder / "bin"))
                    self.addCleanup(tool.unlink)
                self.good("filtered", tool, self.topology("b:2x2"), back_end, filters)

    def test_one_program_has_the_libraries_of_both_languages(self):
        for words in [[], ["--static"]]:
            with self.subTest(words=words):
                tool = self.build("headers/units/both_cpp_first.cpp", "mrnet", "mrnet_lightweight", *words)
                done = subprocess.run([str(tool)], timeout=60, check=False)
                self.assertEqual(done.returncode, 0, "the line that is not so")


class Places(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_package_goes_below_destdir_and_libraries_where_they_are_asked_for(self):
        install(HERE.parent, f"DESTDIR={self.folder}", f"PREFIX={PREFIX}", f"LIBDIR={PREFIX}/lib/arch")
        prefix = self.folder / PREFIX.lstrip("/")
        wanted = {f"bin/{name}" for name in PROGRAMS}
        wanted |= {f"lib/arch/lib{name}.{kind}" for name in LIBRARIES for kind in ["so", "a"]}
        wanted |= {f"lib/arch/pkgconfig/{name}.pc" for name in ["sapwood", *LIBRARIES[:1], *LIBRARIES[2:4]]}
        wanted |= {f"include/{folder}/{name}.h" for folder, names in INSTALLED.items() for name in names.split()}
        wanted |= {f"lib/arch/{name}-5.0.1/include/{name}_config.h" for name in ["mrnet", "xplat"]}
        wanted |= {"lib/arch/libmrnet_filters.so", "include/sapwood.h"}
        self.assertEqual(wanted - files_of(prefix), set())
        self.assertEqual({path for path in files_of(self.folder) if not path.startswith(PREFIX.lstrip("/"))}, set())
        for package in (prefix / "lib/arch/pkgconfig").iterdir():
            text = package.read_text()
            self.assertIn(f"prefix={PREFIX}\nlibdir={PREFIX}/lib/arch\n", text)
            self.assertNotIn(str(self.folder), text)
            self.assertNotIn("@", text)

    def test_programs_and_libraries_find_each_other_where_libraries_have_a_folder_of_their_own(self):
        install(HERE.parent, f"PREFIX={self.folder}", f"LIBDIR={self.folder}/lib/arch")
        topology = self.folder / "tree.top"
        subprocess.run([str(self.folder / "bin/mrnet_topgen"), "-t", "b:2x2", "-o", str(topology)], check=True,
                       input="localhost:64\n", text=True, timeout=60)
        # The tests' own tools, with the libraries that are installed.
        place = {"LD_LIBRARY_PATH": f"{self.folder}/lib/arch", "PATH": "/usr/bin:/bin"}
        code, output, errors = harness.run("loaded_filters", topology, program("back_end"), OUT / "tests/filters.so",
                                           environment=place)
        self.assertEqual((code, output), (0, "filtered\n"), errors)


if __name__ == "__main__":
    unittest.main()

"""Tools in C, with MRNet's names and in Python, whose trees stand on hosts that are reached by ssh.

What they are linked with is taken from where `make` builds it: the C library, MRNet's libraries and test
programs, and the Python environment of the tests.
"""

import glob
import os
import shutil
import subprocess
import tempfile

from stories import HERE, HOSTS, NODE_PROGRAM, STORY_SECONDS_MAX, Story, TESTBED, name

ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("SAPWOOD_TARGET", os.path.join(ROOT, "target"))
PYTHON_PLACE = os.path.join(ROOT, "target", "python", "environment")

NODES = f"node[00-{HOSTS - 1:02d}]"
NAMES = [name(index) for index in range(HOSTS)]

TREE = "localhost:0 => node00:0 node01:0 ;\nnode00:0 => node02:0 node03:0 ;\nnode01:0 => node04:0 node05:0 ;\n"


class Languages(Story):
    """One tree each, over hosts."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A folder that all hosts see.
        cls.folder = tempfile.mkdtemp(prefix="sapwood-languages-", dir="/var/tmp")
        os.chmod(cls.folder, 0o755)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def take(self, path, place):
        """Puts a built folder or file where hosts see it."""
        if not os.path.exists(path):
            self.fail(f"there is no {path}; build it with make -C bindings/mrnet tests")
        if os.path.isdir(path):
            return shutil.copytree(path, os.path.join(self.folder, place), dirs_exist_ok=True,
                                   ignore_dangling_symlinks=True)
        return shutil.copy(path, os.path.join(self.folder, place))

    def on_login_node(self, *words, code=0):
        """What a tool writes there."""
        done = subprocess.run([TESTBED, "login", "env", f"SAPWOOD_NODE={NODE_PROGRAM}", *words], capture_output=True,
                              text=True, timeout=STORY_SECONDS_MAX, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def where(self, *tool):
        """A tool that says where its back-ends are, by each way to say how they are reached."""
        for words in ([], ["ssh"], ["ssh", "ssh", "-o", "LogLevel=ERROR"]):
            lines = self.on_login_node(*tool, NODES, *words).split()
            self.assertEqual(sorted(lines), NAMES, f"{tool} {words}")
        for words, reason in (
            (["node00,node99"], "node99"), (["node[00-"], "node[00-"), ([NODES, "rsh"], "no launcher 'rsh'"),
            ([NODES, "local"], "node00"), ([NODES, "attach"], "attach file"),
        ):
            self.assertIn(reason, self.on_login_node(*tool, *words, code=1))

    def test_c(self):
        for library in glob.glob(os.path.join(TARGET, "release", "libsapwood.so*")):
            self.take(library, os.path.basename(library))
        tool = os.path.join(self.folder, "where")
        subprocess.run(["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200112L",
                        "-I", os.path.join(ROOT, "bindings/c/include"), os.path.join(HERE, "tools/where.c"),
                        "-o", tool, "-L", self.folder, "-Wl,-rpath,$ORIGIN", "-lsapwood"], check=True)
        self.where(tool)

    def test_python(self):
        look = "import os, sys, numpy, sapwood; print(sys._base_executable, os.path.dirname(numpy.__path__[0]))"
        python = os.path.join(PYTHON_PLACE, "bin", "python")
        if not os.path.exists(python):
            self.fail(f"there is no {python}; build it with make python-environment")
        found = subprocess.run([python, "-c", look], check=True, capture_output=True, text=True)
        interpreter, packages = found.stdout.split()
        # What lies beside a program is found by it, on every host.
        for package in ("sapwood", "numpy", "numpy.libs"):
            self.take(os.path.join(packages, package), package)
        self.where(interpreter, self.take(os.path.join(HERE, "tools/where.py"), "where.py"))

    def test_mrnet(self):
        place = self.take(os.path.join(TARGET, "mrnet"), "mrnet")
        tree = os.path.join(self.folder, "tree")
        with open(tree, "w", encoding="ascii") as file:
            file.write(TREE)

        def words(front_end, back_end):
            return [os.path.join(place, "tests", front_end), tree, os.path.join(place, "tests", back_end)]

        settings = ["XPLAT_RSH=ssh", "XPLAT_RSH_ARGS=-o 'LogLevel=ERROR'", "XPLAT_REMCMD=nice -n '1'"]
        adds = words("add_front_end", "add_back_end")
        for tool, expected in ((adds, "4 back-ends"),
                               (words("directives_front_end", "light_back_end"), "directives")):
            self.assertIn(expected, self.on_login_node(*tool))
            self.assertIn(expected, self.on_login_node("env", *settings, *tool))
        # What the settings say is really run.
        for setting in ("XPLAT_RSH=no-such-shell", "XPLAT_REMCMD=no-such-command"):
            self.assertIn("no-such", self.on_login_node("env", setting, *adds, code=1))
        with open(tree, "w", encoding="ascii") as file:
            file.write(TREE.replace("node05", "node99"))
        self.assertIn("node99", self.on_login_node(*adds, code=1))

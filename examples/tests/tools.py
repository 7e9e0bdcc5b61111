"""Runs the tools of examples/ as a user would: the same stories for each language that they are
written in.

    tools.py LANGUAGE=FOLDER... [unittest arguments]

LANGUAGE is a name for messages; FOLDER holds the tools by their names (add, stacks, tail, top, same),
with or without `.py`, which PYTHON runs. SAPWOOD_NODE names `sapwood-node`, and MRNET_TOPGEN
what writes topology files for the tools in `mrnet`, which take no others.
"""

import os
import subprocess
import sys
import tempfile
import unittest

from selection import run_tests

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "testbed"))

import surroundings

surroundings.keep_only("MRNET_TOPGEN", "PYTHON", "SAPWOOD_NODE", **surroundings.runtime_folder())

SECONDS_MAX = 60
SHAPES = ["4", "2x2", "1x4"]
PYTHON = os.environ.get("PYTHON", sys.executable)


class Tool(unittest.TestCase):
    """The stories; a subclass for each language says where its tools are."""

    folder = None
    takes_files = False

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="sapwood-examples-")
        self.addCleanup(self.scratch.cleanup)

    def command(self, name, *arguments):
        script = os.path.join(self.folder, f"{name}.py")
        program = [PYTHON, script] if os.path.exists(script) else [os.path.join(self.folder, name)]
        return [*program, *map(str, arguments)]

    def topology(self, shape):
        """A topology as the tool takes it."""
        if not self.takes_files:
            return shape
        path = os.path.join(self.scratch.name, f"{shape}.top")
        command = [os.environ["MRNET_TOPGEN"], "-t", f"b:{shape}", "-o", path]
        subprocess.run(command, input="localhost:64\n", text=True, check=True, timeout=SECONDS_MAX)
        return path

    def run_tool(self, name, *arguments):
        return subprocess.run(self.command(name, *arguments), cwd=self.scratch.name, text=True,
                              capture_output=True, timeout=SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL)

    def lines(self, name, *arguments):
        run = self.run_tool(name, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.splitlines()

    def write(self, name, text):
        with open(os.path.join(self.scratch.name, name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_addition_has_one_sum_of_everybody(self):
        arguments = [self.topology("4x4")] if self.takes_files else []
        self.assertEqual(self.lines("add", *arguments), ["1720 from ranks 0-15"])

    def test_stacks_that_begin_alike_are_one_branch(self):
        sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
        try:
            pids = [sleeper.pid for sleeper in sleepers]
            for shape in SHAPES:
                lines = self.lines("stacks", self.topology(shape), *pids, os.getpid())
                self.assertEqual(lines.count("sleep: 0-2"), 1, lines)
                self.assertTrue(any(line.endswith(": 3") and not line.startswith(" ")
                                    for line in lines), lines)
        finally:
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()

    def test_stacks_of_too_few_processes_are_refused(self):
        run = self.run_tool("stacks", self.topology("4"), os.getpid())
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("4 back-ends cannot look at 1 process", run.stderr)

    def test_equal_lines_of_logs_are_folded(self):
        for rank in range(4):
            self.write(f"log.{rank}", "connected\n" + ("retrying\n" if rank == 2 else "") + "half")
        for shape in SHAPES:
            lines = self.lines("tail", self.topology(shape), "log.{rank}", 1)
            self.assertEqual(sorted(lines), ["0-3: connected", "2: retrying"])

    def test_a_log_is_followed_as_it_grows(self):
        self.write("log", "first\n")
        command = self.command("tail", self.topology("2x2"), "log", 3)
        with subprocess.Popen(command, cwd=self.scratch.name, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as run:
            self.assertEqual(run.stdout.readline(), "0-3: first\n")
            with open(os.path.join(self.scratch.name, "log"), "a", encoding="utf-8") as file:
                file.write("second\n")
            rest = run.communicate(timeout=SECONDS_MAX)[0]
        # The four back-ends may have seen it in different turns.
        self.assertRegex(rest, "^([0-9,-]+: second\n)+$")

    def test_the_largest_numbers_of_all_hosts_are_found(self):
        for rank in range(4):
            self.write(f"load.{rank}", f"{rank} small\n{100 - rank} large\n50 equal\n")
        for shape in SHAPES:
            lines = self.lines("top", self.topology(shape), 5, "cat load.{rank}")
            self.assertEqual(lines, ["0: 100 large", "1: 99 large", "2: 98 large", "3: 97 large",
                                     "0-3: 50 equal"])

    def test_hosts_with_another_file_are_named_and_it_is_shown(self):
        for rank in range(3):
            self.write(f"conf.{rank}", "a = 1\n" if rank != 1 else "a = 2\nb = 3\n")
        for shape in SHAPES:
            lines = self.lines("same", self.topology(shape), "conf.{rank}")
            self.assertEqual(lines[:2], ["2 back-ends (0,2): 6 bytes, 1 lines", "a = 1"])
            self.assertEqual(lines[2:5], ["1 back-ends (1): 12 bytes, 2 lines", "a = 2", "b = 3"])
            self.assertIn("No such file", lines[5])

    def test_a_file_that_all_share_is_not_printed(self):
        self.write("conf", "a = 1\n")
        lines = self.lines("same", self.topology("2x2"), "conf")
        self.assertEqual(lines, ["4 back-ends (0-3): 6 bytes, 1 lines"])

    def test_wrong_arguments_get_one_line(self):
        for name in ["stacks", "tail", "top", "same"]:
            run = self.run_tool(name)
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(run.stderr, f"^{name}: usage: .*\n$")


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for argument in LANGUAGES:
        language, folder = argument.split("=", 1)
        kind = type(language, (Tool,), {"folder": os.path.abspath(folder),
                                           "takes_files": language == "mrnet"})
        suite.addTests(loader.loadTestsFromTestCase(kind))
    return suite


if __name__ == "__main__":
    LANGUAGES = [word for word in sys.argv[1:] if "=" in word]
    if not LANGUAGES:
        sys.exit(__doc__)
    run_tests([word for word in sys.argv if word not in LANGUAGES])

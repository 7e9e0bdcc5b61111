#!/usr/bin/env python3
"""The benchmarks over hosts (labs/launch, labs/copy, labs/startup) without hosts: their figures, options and commands.

    labs/tests/hosts.py PROGRAM [unittest arguments]

Each program runs whole, but what it would run on the log-in node is answered here, with times that are known. So its
figures can be compared, and each command of `sapwood` that it runs is compared with the help of PROGRAM. What hosts do
is left to the test bed's own tests.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.realpath(__file__))
LABS = os.path.dirname(HERE)
ROOT = os.path.dirname(LABS)
sys.path += [LABS, os.path.join(ROOT, "conformance"), os.path.join(ROOT, "testbed")]
sys.dont_write_bytecode = True

import on_hosts  # noqa: E402
import pages  # noqa: E402
import surroundings  # noqa: E402

PROGRAM = ""
# Seconds that things take, as they are answered here.
OWN, OTHERS, LOG_IN, TREE, BYTES, CHAIN = 1.0, 2.0, 0.5, 1.5, 0.25, 1.0


def loaded(name):
    """A benchmark as a module."""
    loader = importlib.machinery.SourceFileLoader(f"labs_{name}", os.path.join(LABS, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@contextlib.contextmanager
def nothing(*_words):
    """In the place of hosts that stand."""
    yield


class Benchmark(unittest.TestCase):
    """One benchmark; what it ran of `sapwood` is in `asked`."""

    name = ""

    def setUp(self):
        self.script = loaded(self.name)
        self.asked = []
        self.folder = tempfile.TemporaryDirectory(prefix="sapwood-labs-")
        self.addCleanup(self.folder.cleanup)
        # Nothing is installed.
        silent = types.SimpleNamespace(run=lambda *_, **__: None, SubprocessError=subprocess.SubprocessError)
        self.replace(on_hosts, subprocess=silent, standing=nothing, workplace=self.workplace)
        self.replace(self.script, login=self.login)
        self.replace(os, geteuid=lambda: 0)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)

    def replace(self, module, **values):
        for name, value in values.items():
            replaced = mock.patch.object(module, name, value)
            replaced.start()
            self.addCleanup(replaced.stop)

    @contextlib.contextmanager
    def workplace(self, program):
        yield self.folder.name, program

    def login(self, *words):
        """What the log-in node would write."""
        if words[0] != PROGRAM:
            return self.answer_of_others(*words)
        self.asked.append(words)
        return self.answer(*words[1:])

    def run_script(self, *words):
        """Its exit code, and what it wrote."""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", [os.path.join(LABS, self.name), *words]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.script.main()
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def report(self, *words):
        """Its report; the table has been printed, too, and all commands exist."""
        code, table, err = self.run_script(PROGRAM, *words)
        self.assertEqual((code, err), (0, ""))
        self.assertGreater(table.count("\n"), 3)
        code, out, err = self.run_script(PROGRAM, *words, "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertNotEqual(self.asked, [])
        for asked in self.asked:
            fault, _, _ = pages.read_command(PROGRAM, ["sapwood", *asked[1:]])
            self.assertIsNone(fault, asked)
        return json.loads(out)

    def refusal(self, code, *words):
        """The line with which it refuses these words."""
        ended, out, err = self.run_script(*words)
        self.assertEqual((ended, out), (code, ""), err)
        return err


class Launch(Benchmark):
    name = "launch"

    def answer(self, *words):
        return "hosts: 2\ntree: 2\n" if "--dry-run" in words else ""

    def answer_of_others(self, *words):
        # The interpreter, -c, its program, and the command that this times.
        timed = words[3:]
        if timed[0] == PROGRAM:
            self.asked.append(timed)
        took = OWN if timed[0] == PROGRAM else OTHERS
        return json.dumps({"seconds": took, "code": 0, "lines": 10 if "-b" in timed else 1, "stderr": ""})

    def test_its_figures_are_those_of_its_tools(self):
        report = self.report("--hosts", "2,3", "--runs", "2", "--lines", "10")
        self.assertEqual(report["schema"], "sapwood.bench-launch/3")
        self.assertEqual([size["hosts"] for size in report["sizes"]], [2, 3])
        for size in report["sizes"]:
            self.assertEqual(size["tree"], "2")
            self.assertEqual(set(size["true"]["seconds"]), {*self.script.OWN, *self.script.PEERS})
            self.assertEqual(size["true"]["ratios"]["sapwood"]["pdsh"],
                             {"median": OWN / OTHERS, "min": OWN / OTHERS, "max": OWN / OTHERS, "runs": 2})
            self.assertNotIn("pdsh", size["folded"]["seconds"])

    def test_too_few_lines_are_a_failure_of_one_line(self):
        err = self.refusal(125, PROGRAM, "--hosts", "2", "--lines", "40")
        self.assertEqual(err, "labs/launch: sapwood -b wrote 10 lines for 40 that are equal everywhere\n")
        self.assertEqual(self.asked[-1][1:], ("down",))

    def test_what_is_missing_is_one_line(self):
        self.assertIn("--tools: there is no 'fork'", self.refusal(2, PROGRAM, "--tools", "warm,fork"))
        nowhere = os.path.join(self.folder.name, "nowhere")
        self.assertEqual(self.refusal(2, nowhere),
                         f"labs/launch: {nowhere} is no program; build it with cargo build --release\n")
        self.replace(os, geteuid=lambda: 1000)
        self.assertEqual(self.refusal(2, PROGRAM),
                         "labs/launch: needs root, to make hosts of network namespaces\n")


class Copy(Benchmark):
    name = "copy"

    def setUp(self):
        super().setUp()
        self.replace(self.script, shape=lambda *_: None, check=lambda *_: None, log_ins=lambda _: LOG_IN,
                     by_chain=lambda *_: CHAIN)

    def answer(self, *_words):
        return json.dumps({"seconds": BYTES})

    def answer_of_others(self, *_words):
        return ""

    def test_its_figures_are_those_of_its_tools(self):
        report = self.report("--hosts", "2", "--megabytes", "1", "--runs", "2")
        self.assertEqual((report["schema"], report["hosts"]), ("sapwood.bench-copy/1", 2))
        self.assertEqual([rate["mbit"] for rate in report["rates"]], [1000, 0])
        for rate in report["rates"]:
            self.assertEqual(rate["seconds"]["chain_with_log_ins"]["median"], CHAIN + LOG_IN)
            self.assertEqual(rate["ratios"]["bytes_to_chain"]["median"], BYTES / CHAIN)
            self.assertEqual(rate["ratios"]["all_hosts_to_one"]["median"], 1)
            self.assertEqual(rate["seconds"]["clush"]["runs"], 1)


class Startup(Benchmark):
    name = "startup"

    def answer(self, *words):
        if words[0] == "topology":
            return json.dumps({"topology": "2x1"})
        return json.dumps({"levels": 2, "tree": "2x1", "startup_ms": 1e3 * TREE,
                           "waves": {"all_hosts_us": 50, "streamed_per_s": 4000}})

    def answer_of_others(self, *_words):
        return f"{LOG_IN}\n"

    def test_a_tree_is_compared_with_log_ins(self):
        report = self.report("--hosts", "2", "--runs", "2")
        self.assertEqual((report["schema"], report["hosts"]), ("sapwood.bench-startup/2", 2))
        self.assertEqual(set(report["trees"]), set(self.script.TREES))
        for tree in report["trees"].values():
            self.assertEqual((tree["seconds"]["median"], tree["seconds"]["runs"]), (TREE, 2))
            self.assertEqual(tree["ratio"]["median"], TREE / (2 * LOG_IN))
            self.assertEqual(tree["to_floor"]["median"], TREE / LOG_IN)

    def test_shapes_are_compared_with_the_flat_tree(self):
        report = self.report("--hosts", "2", "--runs", "1", "--shapes", "--processors", "0.1")
        self.assertEqual(set(report["trees"]), {"advised", "flat", "k-nomial", "advised request", "advised stream"})
        for tree in report["trees"].values():
            self.assertEqual(tree["all_hosts_us_to_flat"]["median"], 1)
            self.assertEqual(tree["streamed_per_s"]["median"], 4000)

    def test_an_unknown_tree_is_refused(self):
        self.assertIn("--trees: there is no 'oak'", self.refusal(2, PROGRAM, "--trees", "oak"))


# It has no tests of its own.
del Benchmark


def main():
    """Reads the command line."""
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit("usage: labs/tests/hosts.py PROGRAM [unittest arguments]")
    PROGRAM = os.path.realpath(sys.argv.pop(1))
    surroundings.keep_only(**surroundings.runtime_folder())
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()

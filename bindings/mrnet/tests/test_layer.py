"""Tools written against MRNet's interface do what they do with MRNet, and bad input is answered."""

import contextlib
import itertools
import math
import pathlib
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import BACK_ENDS, OUT, TOPOLOGIES, program


class Layer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def good(self, wanted, name, *arguments):
        code, output, errors = harness.run(name, *arguments)
        self.assertEqual(code, 0, f"{name} {arguments}: {output}{errors}")
        self.assertIn(wanted, output)

    def test_every_directive_both_ways_over_every_tree_to_every_back_end(self):
        for name, spec in TOPOLOGIES.items():
            for back_end in BACK_ENDS:
                with self.subTest(topology=name, back_end=back_end):
                    topology = harness.topology(self.folder, spec)
                    self.good("33 directives", "directives_front_end", topology, program(back_end))

    def test_integer_addition(self):
        topology = harness.topology(self.folder, "b:2x2")
        self.good("4 back-ends", "add_front_end", topology, program("add_back_end"))

    def test_everything_that_a_front_end_can_ask(self):
        topology = harness.topology(self.folder, "b:2x2")
        for back_end in BACK_ENDS:
            with self.subTest(back_end=back_end):
                self.good("all asked", "api_front_end", topology, program(back_end), self.folder)
        self.assertIn("=>", (self.folder / "printed.top").read_text())
        self.assertIn("digraph", (self.folder / "printed.dot").read_text())
        self.assertIn("localhost", (self.folder / "printed.txt").read_text())

    def test_what_needs_no_network(self):
        self.good("all there", "offline", self.folder)

    def test_bad_input_is_answered(self):
        topology = harness.topology(self.folder, "b:2x2")
        for back_end in BACK_ENDS:
            with self.subTest(back_end=back_end):
                self.good("all refused", "bad_input", topology, program(back_end))

    def test_back_ends_attach(self):
        for spec in ["b:1", "b:2", "b:2x2"]:
            for back_end in BACK_ENDS:
                with self.subTest(topology=spec, back_end=back_end):
                    topology = harness.topology(self.folder, spec)
                    self.good("attached", "attach_front_end", topology, program(back_end))

    def test_several_networks_and_threads_in_one_process(self):
        topology = harness.topology(self.folder, "b:2")
        for back_end in BACK_ENDS:
            with self.subTest(back_end=back_end):
                self.good("3 networks", "networks", topology, program(back_end))

    def test_back_ends_of_a_killed_process_find_another_parent(self):
        topology = harness.topology(self.folder, "b:2x2")
        for back_end in BACK_ENDS:
            with self.subTest(back_end=back_end):
                self.good("recovered", "recovery", topology, program(back_end))

    def test_failure_recovery_is_switched_off(self):
        topology = harness.topology(self.folder, "b:2x2")
        for back_end, way in itertools.product(BACK_ENDS, ["attribute", "call"]):
            with self.subTest(back_end=back_end, way=way):
                self.good("recovered", "recovery", topology, program(back_end), way)

    def test_loaded_filters(self):
        topology = harness.topology(self.folder, "b:2x2")
        library = OUT / "tests/filters.so"
        for back_end in BACK_ENDS:
            with self.subTest(back_end=back_end):
                self.good("filtered", "loaded_filters", topology, program(back_end), library)

    def test_filters_run_in_every_process_and_in_full_back_ends(self):
        library = OUT / "tests/filters.so"
        # Processes that run an upward filter, and processes on the way to a back-end.
        for spec, processes, on_the_way in [("b:1", 2, 2), ("b:2", 3, 2), ("b:2x2", 7, 3), ("b:1x1x1", 4, 4),
                                            ("b:2x2x2", 15, 4)]:
            back_ends = math.prod(map(int, spec[2:].split("x")))
            for back_end in BACK_ENDS:
                kind = "full" if back_end == "back_end" else "light"
                runs = (processes, on_the_way) if kind == "full" else (processes - back_ends, on_the_way - 1)
                with self.subTest(topology=spec, back_end=back_end):
                    topology = harness.topology(self.folder, spec)
                    self.good(f"{runs[0]} runs up, {runs[1]} down\n", "every_process", topology, program(back_end),
                              library, kind)


class Programs(unittest.TestCase):
    def topgen(self, *arguments, hosts="localhost:64\n"):
        command = [str(OUT / "bin/mrnet_topgen"), *arguments]
        done = subprocess.run(command, input=hosts, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    def test_topologies_of_every_kind(self):
        for spec, nodes in [("b:4^2", 21), ("b:2x3", 9), ("k:2@8", 8), ("g:2:3,1", 7)]:
            with self.subTest(spec=spec):
                code, text = self.topgen("--topology", spec)
                self.assertEqual(code, 0)
                self.assertEqual(len({word for word in text.split() if ":" in word}), nodes)

    def test_hosts_have_room_or_not(self):
        self.assertEqual(self.topgen("-t", "b:4", hosts="one:1\n")[0], 2)
        code, text = self.topgen("-t", "b:4", "-p", "3", "-f", "zero", hosts="one\ntwo\n")
        self.assertEqual(code, 0)
        self.assertTrue(text.startswith("zero:0 =>"))
        self.assertIn("one:1", text)

    def test_the_front_end_is_here_if_nothing_else_is_said(self):
        for words in [[], ["-b", "hosts", "-c", "hosts"]]:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                pathlib.Path("hosts").write_text("one:8\ntwo:8\n")
                code, text = self.topgen("-t", "b:2x2", *words, hosts="one:8\ntwo:8\n")
            self.assertEqual(code, 0)
            self.assertTrue(text.startswith(socket.gethostname() + ":0 =>"), text)

    def test_wrong_arguments_are_refused(self):
        for words in [[], ["-t", "x:4"], ["-t", "b:4", "-b", "/none"], ["-t", "b:0"], ["-t", "b:4", "-p", "x"]]:
            self.assertEqual(self.topgen(*words)[0], 2, words)

    def test_a_communication_process_is_not_started_by_hand(self):
        done = subprocess.run([str(OUT / "bin/mrnet_commnode")], capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()

"""Runs programs with libsapwood-bypass under `sapwood trace why --hops`, and compares what it tells of the edges of
their trees with what each must be, and with the ranks' own event files.

Needs the environment that watched.py names, and in its folder what `make all` builds; `make truth` sets it.
"""

import glob
import os
import subprocess
import tempfile
import unittest
from collections import Counter, defaultdict

import turns
import watched
from rank_events import ARRIVED, ENTERED, EXIT, LATE, RECEIVED_DOWN, ROOT, SENT_UP, TO_ALL, EventFile
from watched import LAUNCHERS, RUN_SECONDS_MAX, has_mpi, library_folder, test_program
from why import WhyRun

ROUNDS = 40
# The binomial tree of ranks 0 to 3.
EDGES = {(0, 1), (0, 2), (2, 3)}


class EachAbi:
    """The tests that both ABIs share; subclasses name theirs."""

    abi = None
    ranks = 4

    def setUp(self):
        self.bypass = os.path.join(library_folder(), f"libsapwood-bypass-{self.abi}.so")
        if not has_mpi(self.abi) or not os.path.exists(self.bypass):
            self.skipTest(f"no {self.abi} here")

    def command(self, scenario, rounds=ROUNDS):
        return [*LAUNCHERS[self.abi], str(self.ranks), test_program(self.abi, "hops"), scenario, str(rounds)]

    def told(self, **more):
        return {"LD_PRELOAD": self.bypass, "SAPWOOD_BYPASS": "reduce,allreduce", **more}

    def watch(self, scenario, *options, rounds=ROUNDS, environment=None):
        """What the command tells of hops, and the same by edge."""
        run = WhyRun(self.command(scenario, rounds), "--hops", *options, out=False,
                     environment=environment or self.told())
        self.assertEqual((run.code, run.output), (0, ""), run.errors)
        hops = run.why["hops"]
        edges = {(edge["parent"], edge["child"]): edge for edge in hops["edges"]}
        return run, hops, edges

    def assert_whole(self, hops, rounds=ROUNDS):
        lost = [hops[key] for key in ("incomplete", "overwritten", "left_out", "unknown")]
        self.assertEqual((hops["ranks"], hops["reductions"], *lost), (self.ranks, rounds, 0, 0, 0, 0), hops)

    def test_a_part_that_comes_after_its_parent_has_left_is_bypassed(self):
        # Whether all ranks have one leaf, or each its own.
        for topology in ("1", str(self.ranks)):
            with self.subTest(topology=topology):
                run, hops, edges = self.watch("reduce", "--topology", topology)
                self.assert_whole(hops)
                self.assertEqual(set(edges), EDGES)
                for edge in edges.values():
                    self.assertEqual(edge["reductions"], ROUNDS, edge)
                    self.assertEqual((edge["up"]["count"], edge["down"]), (ROUNDS, None), edge)
                late = edges[(2, 3)]
                counts = [late[key] for key in ("last", "late", "bypassed", "last_share")]
                self.assertEqual(counts, [ROUNDS, ROUNDS, ROUNDS, 1.0], late)
                self.assertEqual((late["after_exit"]["count"], late["behind"]), (ROUNDS, None), late)
                # The part of rank 2 comes with that of rank 3, which brings both. The root waits.
                above = edges[(0, 2)]
                self.assertEqual(above["bypassed"], 0, above)
                # The root is about to call when it comes: where it had called, the part was the last.
                self.assertLessEqual(above["late"], above["last"], above)
                self.assertEqual([edges[(0, 1)][key] for key in ("last", "bypassed")], [0, 0])
                self.assertEqual((above["behind"]["count"], edges[(0, 1)]["behind"]), (ROUNDS, None))
                self.assertIn(f"hops of {ROUNDS} reductions that were bypassed", run.errors)
                self.assertRegex(run.errors, rf"2 <- 3 +{ROUNDS} +100.0 % +{ROUNDS} ")

    def test_a_result_that_all_read_has_a_way_down_and_is_nothing_to_bypass(self):
        _, hops, edges = self.watch("allreduce")
        self.assert_whole(hops)
        self.assertEqual(set(edges), EDGES)
        for edge in edges.values():
            self.assertEqual((edge["bypassed"], edge["down"]["count"]), (0, ROUNDS), edge)
        # The last rank comes once the others are about to call, of which none need have done so.
        self.assertLessEqual(edges[(2, 3)]["late"], ROUNDS)

    def test_of_an_operand_of_several_chunks_the_first_is_noted(self):
        _, hops, edges = self.watch("large")
        self.assert_whole(hops)
        self.assertEqual(edges[(2, 3)]["bypassed"], ROUNDS)

    def test_hops_that_were_overwritten_are_counted_and_the_rest_is_right(self):
        # No reading within the run: what is read at its end is the last part of each ring of 128 records.
        environment = self.told(SAPWOOD_MPI_RING_BYTES="4096")
        _, hops, edges = self.watch("reduce", "--interval", "60s", rounds=400, environment=environment)
        self.assertGreater(hops["overwritten"], 0, hops)
        self.assertGreater(hops["incomplete"], 0, hops)
        self.assertLess(hops["reductions"], 400)
        for edge in edges.values():
            self.assertEqual(edge["reductions"], hops["reductions"])

    def test_a_program_without_the_bypass_is_told_so(self):
        # In an MPI_Reduce of the MPI library a rank inside its tree waits for the last one, which waits for its message.
        run, hops, edges = self.watch("allreduce", environment={"SAPWOOD_BYPASS": "reduce"})
        self.assertEqual((hops["ranks"], hops["reductions"], edges), (self.ranks, 0, {}))
        self.assertIn("no reduction was bypassed", run.errors)

    def test_without_the_option_nothing_is_noted(self):
        run = WhyRun(self.command("reduce"), out=False, environment=self.told())
        self.assertEqual((run.code, run.why["hops"]), (0, None), run.errors)
        self.assertNotIn("bypassed", run.errors)

    def test_the_files_of_an_ended_job_have_the_hops(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-hops-") as folder:
            events = os.path.join(folder, "events")
            _, told, _ = self.watch("reduce", "--events-folder", events)
            self.assert_whole(told)
            words = [watched.sapwood(), "trace", "why", "--from", events]
            found = subprocess.run(words, capture_output=True, text=True, check=True, timeout=RUN_SECONDS_MAX)
            self.assertRegex(found.stdout, rf"2 <- 3 +{ROUNDS} +100.0 % +{ROUNDS} ")
            self.check_files([EventFile(read(path)) for path in glob.glob(os.path.join(events, "*.events"))])

    def check_files(self, files):
        """The events as hops.h says: which there are of each reduction, and in which order each rank's own come."""
        self.assertEqual(len(files), self.ranks)
        self.assertEqual({(file.without_hop_ring, file.dropped) for file in files}, {(0, 0)})
        instances = defaultdict(list)
        for file in files:
            own = [hop for hop in file.hops if hop.kind in (ENTERED, EXIT)]
            self.assertEqual([(hop.rank, hop.kind) for hop in own], [(file.rank, ENTERED), (file.rank, EXIT)] * ROUNDS)
            self.assertEqual(file.hops, sorted(file.hops, key=lambda hop: hop.time))
            for hop in file.hops:
                self.assertEqual((hop.size, hop.flags & TO_ALL), (self.ranks, 0))
                instances[(hop.communicator, hop.instance)].append((file.rank, hop))
        self.assertEqual(len(instances), ROUNDS)
        for hops in instances.values():
            kinds = Counter(hop.kind for _, hop in hops)
            self.assertEqual(kinds, {ENTERED: 4, ARRIVED: 3, SENT_UP: 4, EXIT: 4}, hops)
            self.assertNotIn(RECEIVED_DOWN, kinds)
            arrived = {(hop.rank, hop.child): (writer, hop) for writer, hop in hops if hop.kind == ARRIVED}
            self.assertEqual(set(arrived), EDGES)
            # The last rank brings its own part to the place of rank 2, which has left, and then that one's to the root.
            self.assertEqual([arrived[edge][0] for edge in ((2, 3), (0, 2))], [3, 3])
            self.assertTrue(arrived[(2, 3)][1].flags & LATE)
            self.assertEqual([hop.rank for _, hop in hops if hop.kind == SENT_UP and hop.flags & ROOT], [0])


def read(path):
    with open(path, "rb") as file:
        return file.read()


class OpenMpi(EachAbi, unittest.TestCase):
    abi = "openmpi"


class Mpich(EachAbi, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main(verbosity=2)

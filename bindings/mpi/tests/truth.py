"""Compares what came through the tree with what each rank wrote by itself.

Every rank of every program also writes its own table to disk. From these files statistics are
computed here, off-line and without any of Sapwood's code, and must equal those in profile.json:
integers exactly (calls, bytes and nanoseconds: sum, smallest and largest with the lowest rank that
has them), mean and standard deviation to rounding. The rows of ranks.parquet must be the files'
contents. All of this at fan-out 1, 2 and 8.

Needs the environment that watched.py names; `make truth` sets it.
"""

import math
import os
import shutil
import subprocess
import tempfile
import unittest
from fractions import Fraction

import turns
import watched
from expected import TRANSFERS_UNTRACKED, peers as expected_peers
from rank_profile import COMMUNICATOR, NONE, SITE, USAGE, function_groups
from watched import HERE, LAUNCHERS, ON_HOSTS, SYSTEM_PYTHON, OneMpi, Watched, test_program

POINT_TO_POINT = {name for name, group in function_groups().items() if group == "point-to-point"}
STATES = {1: "running", 2: "finalized", 3: "exited"}
# Fan-out 1: a chain above one leaf. 2: a binary tree of four leaves. 8: a flat tree.
TREES = {1: ["--topology", "1x1x1"], 2: ["--topology", "2^2"], 8: ["--topology", "8"]}
if ON_HOSTS:
    # Each of the four hosts has a leaf.
    TREES[1] = ["--topology", "1x1x4"]
# The digits that a float of profile.json has lost at most.
ROUNDING = 1e-12


def events_of(profile):
    """(name, size class or None, is a region) -> (calls, nanoseconds, bytes) of one dump."""
    events = {}
    for key, (count, moved) in profile.calls.items():
        name, size = key
        events[(name, None if size == NONE else size, False)] = (count, profile.times[key], moved)
    for name, count in profile.regions.items():
        events[(name, None, True)] = (count, profile.times[name], 0)
    return {key: counters for key, counters in events.items() if any(counters)}


def statistics(values):
    """Of values by rank, as profile.json has them; mean and deviation as exact fractions."""
    numbers = list(values.values())
    smallest, largest = min(numbers), max(numbers)
    mean = Fraction(sum(numbers), len(numbers))
    variance = Fraction(sum(number * number for number in numbers), len(numbers)) - mean * mean
    return {"sum": sum(numbers), "mean": mean, "variance": variance,
            "min": smallest, "min_rank": min(rank for rank in values if values[rank] == smallest),
            "max": largest, "max_rank": min(rank for rank in values if values[rank] == largest)}


def ranks_of(text):
    """The ranks of a text such as 0-3,7."""
    ranks = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def code(one):
    """The size class of a call as the tables have it."""
    size = one["communicator_size_class"]
    return NONE if size is None else size


class Truth(OneMpi):
    """The comparison that all programs share."""

    ranks = 4
    trees = TREES

    def setUp(self):
        self.maxDiff = None

    def compare(self, program, trees=TREES, ranks=None, finalized=True, code=0):
        ranks = ranks or self.ranks
        for fan_out, tree in trees.items():
            with self.subTest(program=os.path.basename(program[0]), fan_out=fan_out):
                command = [*LAUNCHERS[self.abi], str(ranks), *program]
                run = Watched(command, *tree, "--interval", "50ms", "--quiet")
                self.assertEqual(run.code, code, run.errors)
                self.assertEqual(sorted(run.dumps), list(range(ranks)), run.errors)
                self.check_facts(run, ranks, finalized)
                self.check_events(run)
                self.check_rows(run)
                self.check_time(run)
                self.check_sizes(run)
                self.check_processes(run)

    def check_facts(self, run, ranks, finalized):
        profile = run.profile
        self.assertEqual(profile["schema"], "sapwood.profile/1")
        self.assertEqual((profile["world_size"], profile["ranks_covered"]), (ranks, ranks))
        self.assertEqual((ranks_of(profile["covered"]), profile["missing"]), (list(range(ranks)), []))
        state = "finalized" if finalized else "exited"
        self.assertEqual(ranks_of(profile["states"][state]), list(range(ranks)))
        dropped = sum(dump.dropped for dump in run.dumps.values())
        self.assertEqual((profile["dropped"], profile["unreadable"]), (dropped, 0))

    def check_events(self, run):
        expected = {}
        for rank, dump in run.dumps.items():
            for key, counters in events_of(dump).items():
                expected.setdefault(key, {})[rank] = counters
        came = {(event["name"], event["communicator_size_class"], event["class"] == "region"): event
                for event in run.profile["events"]}
        self.assertEqual(len(came), len(run.profile["events"]), "an event came twice")
        self.assertEqual(set(came), set(expected))
        for key, by_rank in expected.items():
            event = came[key]
            self.assertEqual(event["ranks"], len(by_rank), key)
            for at, metric in enumerate(("calls", "time_ns", "bytes")):
                values = {rank: counters[at] for rank, counters in by_rank.items()}
                self.check_metric((key, metric), event[metric], statistics(values))

    def check_time(self, run):
        """The division of time, from each rank's own clock and counts."""
        wall = {rank: dump.ended_ns - dump.started_ns for rank, dump in run.dumps.items()}
        mpi = {rank: min(dump.mpi_ns, wall[rank]) for rank, dump in run.dumps.items()}
        compute = {rank: wall[rank] - mpi[rank] for rank in wall}
        came = run.profile["time"]
        for name, values in (("wall_ns", wall), ("mpi_ns", mpi), ("compute_ns", compute),
                             ("mpi_ppm", {rank: mpi[rank] * 10**6 // wall[rank] for rank in wall})):
            self.check_metric(("time", name), came[name], statistics(values))
        largest = max(compute.values())
        balance = Fraction(sum(compute.values()), len(compute) * largest)
        communication = Fraction(largest, max(wall.values()))
        for name, expected in (("load_balance", balance), ("communication", communication),
                               ("parallel", balance * communication)):
            self.assertTrue(math.isclose(came["efficiency"][name], expected, rel_tol=ROUNDING), (name, came, expected))

    def check_sizes(self, run):
        """Messages and their sizes, from the rows of each rank."""
        expected = {}
        for dump in run.dumps.values():
            for (name, size), row in dump.sizes.items():
                key = (name, None if size == NONE else size)
                expected[key] = [sum(pair) for pair in zip(expected.get(key, [0] * 32), row)]
        came = {(event["name"], event["communicator_size_class"]): event for event in run.profile["events"]}
        for key, event in came.items():
            row = expected.get(key)
            if row is None:
                self.assertEqual((event["size_histogram"], event["messages"], event["mean_bytes"]), (None,) * 3, key)
                continue
            histogram = event["size_histogram"]
            self.assertEqual(histogram + [0] * (32 - len(histogram)), row, key)
            self.assertEqual(event["messages"], sum(row[1:]), key)
            # An exchange has two messages; a persistent request one for each start.
            if "_init" not in key[0]:
                self.assertEqual(sum(row), event["calls"]["sum"] * (2 if "Sendrecv" in key[0] else 1), key)
            mean = event["bytes"]["sum"] / event["messages"] if event["messages"] else None
            self.assertEqual(event["mean_bytes"], mean, key)
        self.assertLessEqual(set(expected), set(came))

    def check_processes(self, run):
        """Figures of the processes against what each said of itself at its end."""
        came = run.profile["figures"]
        for name in USAGE:
            self.check_metric(("figure", name), came[name], statistics({rank: dump.usage[name] for rank, dump in run.dumps.items()}))
        received = {rank: sum(dump.received.values()) for rank, dump in run.dumps.items()}
        moved = {rank: sum(count[1] for key, count in dump.calls.items() if key[0] in POINT_TO_POINT)
                 for rank, dump in run.dumps.items()}
        self.check_metric(("figure", "received"), came["received_bytes"], statistics(received))
        sent = {rank: moved[rank] - received[rank] for rank in moved}
        self.check_metric(("figure", "sent"), came["sent_bytes"], statistics(sent))
        untracked = {rank: dump.untracked for rank, dump in run.dumps.items() if dump.untracked}
        self.assertEqual("untracked_requests" in came, bool(untracked))
        if untracked:
            self.check_metric(("figure", "untracked"), came["untracked_requests"], statistics(untracked))
        share = {}
        for rank, dump in run.dumps.items():
            used = dump.usage["cpu_user_ns"] + dump.usage["cpu_system_ns"] - dump.started_cpu_ns
            share[rank] = max(0, used) * 10**6 // (dump.ended_ns - dump.started_ns)
        self.check_metric(("figure", "cpu_ppm"), came["cpu_ppm"], statistics(share))
        self.assertEqual((run.profile["unwatched"], run.profile["taken"], run.profile["has_left_out"]), (0, "", False))
        for interval in run.profile["intervals"]:
            product = interval["load_balance"] * interval["communication"]
            self.assertTrue(math.isclose(interval["parallel"], product, rel_tol=ROUNDING), interval)
        self.assertEqual([run.profile[name] for name in ("call_sites", "communicators", "peers")], [None] * 3)

    def beside(self, mode, several):
        """Two ranks, of which `several` have two threads, and the nanoseconds that the program says."""
        command = [*LAUNCHERS[self.abi], "2", test_program(self.abi, "beside"), mode]
        run = Watched(command, "--interval", "100ms", "--quiet")
        self.assertEqual(run.code, 0, run.errors)
        self.check_time(run)
        threads = run.profile["figures"]["mpi_threads"]
        self.assertEqual((threads["sum"], threads["min"], threads["max"], threads["max_rank"]), (2 * several, 2, 2, 0))
        ranks = "1 rank calls" if several == 1 else f"{several} ranks call"
        self.assertIn(f"{ranks} MPI in several threads, up to 2 (rank 0): in MPI only while all of these are",
                      " ".join(run.report.split()))
        return run, int(run.output)

    def test_a_rank_whose_second_thread_receives_while_the_first_computes_is_not_in_mpi(self):
        run, computed = self.beside("computes", 2)
        time = run.profile["time"]
        # The clocks of the program and of the shim differ by less than a tenth.
        self.assertGreater(time["compute_ns"]["min"], 0.9 * computed, time)
        [receives] = [event for event in run.profile["events"] if event["name"] == "MPI_Recv"]
        self.assertGreater(receives["time_ns"]["sum"], 0.5 * computed, "the receive itself lasted all the time")
        # While it runs as well: in most rounds the receive had not returned.
        shares = sorted(interval["mpi_share"] for interval in run.profile["intervals"])
        self.assertLess(shares[len(shares) // 2], 0.5, shares)

    def test_a_rank_of_which_both_threads_receive_is_in_mpi(self):
        run, slept = self.beside("waits", 1)
        mpi = run.profile["time"]["mpi_ns"]
        # The other rank sleeps outside of MPI.
        self.assertEqual(mpi["max_rank"], 0, mpi)
        self.assertGreater(mpi["max"], 0.5 * slept, mpi)
        self.assertLessEqual(mpi["max"], run.profile["time"]["wall_ns"]["max"])

    def test_sent_and_received_bytes(self):
        for fan_out, tree in self.trees.items():
            with self.subTest(fan_out=fan_out):
                run = Watched([*LAUNCHERS[self.abi], str(self.ranks), test_program(self.abi, "transfers")], *tree, "--quiet")
                self.assertEqual(run.code, 0, run.errors)
                self.check_events(run)
                self.check_rows(run)
                self.check_processes(run)
                lost = TRANSFERS_UNTRACKED * self.ranks
                self.assertIn(f"requests whose bytes are not counted: {lost}; no room, or freed before", run.report)
                figures = [line for line in run.report.splitlines() if line.startswith(("messages, sent", "messages, received"))]
                self.assertEqual(len(figures), 2, run.report)

    def test_call_sites_peers_and_communicators(self):
        program, ranks = test_program(self.abi, "peers"), self.ranks
        for fan_out, tree in self.trees.items():
            with self.subTest(fan_out=fan_out):
                run = Watched([*LAUNCHERS[self.abi], str(ranks), program], *tree, "--quiet", "--call-sites", "--peers",
                              "--communicators")
                self.assertEqual(run.code, 0, run.errors)
                self.check_tallies(run, SITE, run.profile["call_sites"], lambda key: (key[1], key[2], key[3], key[4]),
                                   lambda one: (one["function"], code(one), one["address"], one["name"]))
                self.check_tallies(run, COMMUNICATOR, run.profile["communicators"], lambda key: (key[1], key[2], key[4]),
                                   lambda one: (one["function"], code(one), one["name"]))
                self.check_peers(run, ranks)
                self.check_places(run)

    def check_tallies(self, run, kind, came, key_of, name_of):
        expected = {}
        for rank, dump in run.dumps.items():
            for key, counters in dump.tallies.items():
                if key[0] == kind:
                    ranks = expected.setdefault(key_of(key), {})
                    ranks[rank] = tuple(map(sum, zip(ranks.get(rank, (0, 0, 0)), counters)))
        came = {name_of(one): one for one in came}
        self.assertEqual(set(came), set(expected))
        for key, by_rank in expected.items():
            self.assertEqual(came[key]["ranks"], len(by_rank), key)
            for at, metric in enumerate(("calls", "time_ns", "bytes")):
                values = {rank: counters[at] for rank, counters in by_rank.items()}
                self.check_metric((key, metric), came[key][metric], statistics(values))

    def check_peers(self, run, ranks):
        pairs = {}
        for rank in range(ranks):
            for to, (messages, moved) in expected_peers(rank, ranks).items():
                pairs[(rank, to)] = (messages, moved)
        came = {(pair["from"], pair["to"]): (pair["messages"], pair["bytes"]) for pair in run.profile["peers"]["ranks"]}
        self.assertEqual(came, pairs)
        host = run.dumps[0].host
        whole = tuple(map(sum, zip(*pairs.values())))
        hosts = [(pair["from"], pair["to"], pair["messages"], pair["bytes"]) for pair in run.profile["peers"]["hosts"]]
        self.assertEqual(hosts, [(host, host, *whole)])

    def check_places(self, run):
        """File and line of the ring's call, by the text of the program."""
        with open(os.path.join(HERE, "peers.c"), encoding="utf-8") as file:
            line = next(number for number, text in enumerate(file, 1) if "the ring's line" in text)
        sites = {one["place"]: one for one in run.profile["call_sites"] if one["function"] == "MPI_Sendrecv"}
        # The compiler may name any line of the call.
        places = [f"peers.c:{at} in ring" for at in (line, line + 1)]
        ring = [one for place, one in sites.items() if place in places]
        self.assertEqual([one["calls"]["sum"] for one in ring], [3 * self.ranks], sites)
        world = f"MPI_COMM_WORLD [0-{self.ranks - 1}]"
        communicators = {one["name"] for one in run.profile["communicators"]}
        self.assertIn(world, communicators)
        self.assertEqual(len([name for name in communicators if name.startswith("half \x01\\xff<b> [")]), 2, communicators)

    def test_a_tool_in_front_is_taken_behind_the_shim(self):
        tool = test_program(self.abi, "pmpi_tool.so")
        by_option = ["-x", f"LD_PRELOAD={tool}"] if self.abi == "openmpi" else ["-genv", "LD_PRELOAD", tool]
        for environment, options in [({"LD_PRELOAD": tool}, []), ({}, by_option)]:
            *launcher, count = LAUNCHERS[self.abi]
            command = [*launcher, *options, count, str(self.ranks), test_program(self.abi, "solver")]
            with self.subTest(options=options):
                self.check_tool_in_front(Watched(command, "--quiet", environment=environment))

    def test_a_tool_that_takes_the_begin_and_the_end_of_mpi_hides_neither(self):
        command = [*LAUNCHERS[self.abi], str(self.ranks), test_program(self.abi, "solver")]
        run = Watched(command, "--quiet", environment={"LD_PRELOAD": test_program(self.abi, "pmpi_all.so")})
        self.assertEqual((run.code, run.profile["taken"]), (0, ""), run.errors)
        self.check_events(run)
        counts = {event["name"]: event["calls"]["sum"] for event in run.profile["events"]}
        self.assertEqual((counts["MPI_Allreduce"], counts["MPI_Finalize"]), (70 * self.ranks, self.ranks))
        self.assertNotIn("MPI_Finalize", run.errors)
        self.assertNotIn("without MPI_Finalize", run.report)

    def check_tool_in_front(self, run):
        self.assertEqual((run.code, run.output.count("tool: 70 reductions\n")), (0, self.ranks), run.errors)
        self.assertEqual(run.profile["taken"], "")
        self.check_events(run)
        counts = {event["name"]: event["calls"]["sum"] for event in run.profile["events"]}
        self.assertEqual(counts["MPI_Allreduce"], 70 * self.ranks)

    def check_metric(self, what, came, expected):
        for name in ("sum", "min", "min_rank", "max", "max_rank"):
            self.assertEqual(came[name], expected[name], (what, name))
        self.assertTrue(math.isclose(came["mean"], expected["mean"], rel_tol=ROUNDING), (what, came, expected))
        # The square of what came, so that no root is taken here.
        squared = Fraction(came["standard_deviation"]) ** 2
        self.assertTrue(math.isclose(squared, expected["variance"], rel_tol=4 * ROUNDING), (what, came, expected))

    def check_rows(self, run):
        if ON_HOSTS and run.rows is None:
            # Only tests of one host have the reader of the rows.
            return
        expected = []
        for rank, dump in run.dumps.items():
            for (name, size, _), counters in events_of(dump).items():
                received = dump.received.get((name, NONE if size is None else size), 0)
                sent = counters[2] - received if name in POINT_TO_POINT else 0
                size = "" if size is None else str(size)
                numbers = map(str, (*counters, sent, received))
                expected.append([str(rank), dump.host, str(dump.pid), STATES[dump.state], name, size, *numbers])
        # The class of an event, the sixth column, is a name that the dump does not have.
        came = [[*row[:5], *row[6:]] for row in run.rows]
        self.assertEqual(sorted(came), sorted(expected))


class OpenMpi(Truth, unittest.TestCase):
    abi = "openmpi"

    # Debian's MPICH 4.0.2 cannot spawn.
    def test_spawned_processes_are_said_not_to_be_watched(self):
        run = Watched([*LAUNCHERS[self.abi], "1", test_program(self.abi, "spawn")])
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual((run.profile["ranks_covered"], run.profile["unwatched"]), (1, 2), run.errors)
        unwatched = "2 more processes are not watched: started by MPI_Comm_spawn"
        self.assertIn(unwatched, run.errors)
        self.assertRegex(run.report, rf"losses +{unwatched}")

    def test_c_solver(self):
        self.compare([test_program(self.abi, "solver")])

    def test_fortran_solvers(self):
        for face in ("mpif", "usempi", "f08"):
            self.compare([test_program(self.abi, f"solver_{face}")], trees={2: TREES[2]})

    def test_mpi4py_solver(self):
        if subprocess.run([SYSTEM_PYTHON, "-c", "import mpi4py.MPI"], capture_output=True, check=False).returncode:
            self.skipTest("no mpi4py here (Debian: python3-mpi4py)")
        self.compare([SYSTEM_PYTHON, os.path.join(HERE, "solver_mpi4py.py")], trees={8: TREES[8]})

    def test_regions_used_well_and_badly(self):
        self.compare([test_program(self.abi, "regions")], trees={1: TREES[1]})

    def test_communicators_of_many_sizes(self):
        self.compare([test_program(self.abi, "communicators")], trees={2: TREES[2]})

    def test_a_program_without_finalize(self):
        # Open MPI's launcher takes that for an error of the program.
        program = [test_program(self.abi, "unfinalized"), "exit"]
        self.compare(program, trees={1: TREES[1]}, ranks=1, finalized=False, code=1)

    def test_lammps(self):
        if shutil.which("lmp") is None:
            self.skipTest("no LAMMPS here (Debian: lammps)")
        melt = os.path.join(HERE, "..", "..", "..", "demo", "in.melt")
        arguments = ["-in", melt, "-var", "steps", "40", "-var", "cells", "8", "-log", "none"]
        self.compare(["lmp", *arguments], ranks=8)

    def test_hpcc(self):
        if shutil.which("hpcc") is None:
            self.skipTest("no HPCC here (Debian: hpcc)")
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-hpcc-") as folder:
            shutil.copy(os.path.join(HERE, "hpccinf.txt"), folder)
            # HPCC reads its input from the folder that it runs in. Fan-outs are compared by LAMMPS and the solver.
            self.compare(["-wdir", folder, "hpcc"], trees={2: TREES[2]})


class Mpich(Truth, unittest.TestCase):
    abi = "mpich"
    # MPICH's ranks spin while they wait: more of them than processors hardly move.
    ranks = 2
    # Trees, which know no MPI, are compared with Open MPI, and of the solver here, too.
    trees = {2: TREES[2]}

    def test_c_solver(self):
        self.compare([test_program(self.abi, "solver")])

    def test_fortran_solvers(self):
        for face in ("mpif", "usempi", "f08"):
            self.compare([test_program(self.abi, f"solver_{face}")], trees={2: TREES[2]})

    def test_large_counts(self):
        self.compare([test_program(self.abi, "large")], trees={1: TREES[1]})

    def test_netpipe(self):
        if shutil.which("NPmpich2") is None:
            self.skipTest("no NetPIPE here (Debian: netpipe-mpich2)")
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-netpipe-") as folder:
            arguments = ["-u", "16", "-n", "5", "-o", os.path.join(folder, "out")]
            self.compare(["NPmpich2", *arguments], trees={8: TREES[8]})


load_tests = turns.load_tests

if __name__ == "__main__":
    watched.sapwood(), watched.library_folder()
    unittest.main()

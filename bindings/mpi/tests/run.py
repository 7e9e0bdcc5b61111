"""Runs MPI programs under the shims and compares every count with the program's text.

    run.py [--out FOLDER] [unittest arguments]

Builds into a temporary folder, or uses the one given. Ranks: four under Open MPI,
which yields; two under MPICH, which spins. Every run has a deadline, and a hang
is reported as one, apart from a wrong count. MPI_ABI_CC names the compiler for the
standard's ABI, beside which its launcher lies.
"""

import contextlib
import functools
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "generate"), os.path.join(HERE, "..", "..", "..", "testbed")]
sys.dont_write_bytecode = True

import expected
import header
import prerequisites
import surroundings
import table
import turns
from marks import MARK, LeftBehind, end_what_is_left, new_mark
from rank_events import COLLECTIVE, COMPLETED, STARTED, EventFile
from rank_profile import PEER, SITE, Profile

RUN_SECONDS_MAX = 120
GRACE_SECONDS = 5
BUILD_SECONDS_MAX = 600
COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich", "abi": os.environ.get("MPI_ABI_CC", "mpicc_abi")}
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
    "mpich": ["mpirun.mpich", "-np"],
    "abi": [os.path.join(os.path.dirname(shutil.which(COMPILERS["abi"]) or "absent/mpicc"), "mpiexec"), "-np"],
}
ABI_NUMBERS = {"openmpi": 1, "mpich": 2, "abi": 3}
RANKS = {"openmpi": 4, "mpich": 2, "abi": 2}
SYSTEM_PYTHON = "/usr/bin/python3"
# The collectives of the MPI standard, each of which has a non-blocking form, and both forms for large counts.
COLLECTIVES = (
    "Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Exscan Gather Gatherv Reduce "
    "Reduce_scatter Reduce_scatter_block Scan Scatter Scatterv Neighbor_allgather Neighbor_allgatherv "
    "Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw").split()
FORMS = {f"MPI_{form}{large}" for name in COLLECTIVES for form in (name, f"I{name[0].lower()}{name[1:]}")
         for large in ("", "_c")}
# They make a request, with which the shim keeps what is recorded at each start of it.
PERSISTENT = {f"MPI_{name}_init{large}" for name in COLLECTIVES for large in ("", "_c")}
# What the Makefile is told when it runs these tests, and they it.
OF_MAKE = ("MAKEFLAGS", "CC", "CFLAGS", "OPENMPI_CC", "OPENMPI_FC", "MPICH_CC", "MPICH_FC", "MPI_ABI_CC")

out = None
run_number = 0


class Hang(AssertionError):
    """A run that had to be ended at its deadline."""


def setUpModule():
    global out
    surroundings.keep_only("SAPWOOD_MPI_TEST_OUT", *OF_MAKE, **surroundings.MPI)
    chosen = os.environ.get("SAPWOOD_MPI_TEST_OUT")
    out = chosen or tempfile.mkdtemp(prefix="sapwood-mpi-test-")
    if not chosen:
        unittest.addModuleCleanup(shutil.rmtree, out)
    done = subprocess.run(["make", "-C", os.path.join(HERE, ".."), "-j2", f"OUT={out}"], capture_output=True,
                          text=True, timeout=BUILD_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the build failed:\n{done.stderr}")
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith("missing")))


def shim(abi):
    return os.path.join(out, f"libsapwood-mpi-{abi}.so")


def program(abi, name):
    return prerequisites.built(out, f"{abi}/{name}")


def members(session):
    """The processes of a session, which launchers' children share whatever their group."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(int(pid)) == session:
                yield int(pid)


def end_session(process):
    """Ends a process that we started in a session of its own, and all it has started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)
    for pid in members(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # A killed process ends as soon as it gets a processor.
    process.wait(timeout=RUN_SECONDS_MAX)


def execute(command, environment, **gone):
    """Runs to the end or the deadline: exit code, output, errors. Nothing of it may be left, and so no memory of its."""
    mark = new_mark()
    process = subprocess.Popen(command, env={**os.environ, **environment, MARK: mark}, start_new_session=True, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        end_session(process)
        raise Hang(f"hung for {RUN_SECONDS_MAX} s: {' '.join(command)}") from None
    if left := end_what_is_left(mark, **gone):
        raise LeftBehind(f"left running by {' '.join(command)}: {left}")
    return process.returncode, output, errors


@functools.cache
def transfers_unobserved(abi):
    """What the program transfers prints without the shim."""
    code, output, errors = execute([*LAUNCHERS[abi], str(RANKS[abi]), program(abi, "transfers")], {})
    assert code == 0, errors
    return output


class Run:
    """One observed run: its exit code and errors, and what leaf and ranks saw; `events` where waits are recorded."""

    def __init__(self, abi, command, ranks, leaves=1, launcher=True, environment=None):
        global run_number
        run_number += 1
        base = f"sapwood-mpi-test-{os.getpid()}-{run_number}"
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-run-") as folder:
            probe = subprocess.Popen([os.path.join(out, "leaf_probe"), base, str(leaves), str(ranks),
                                      str(RUN_SECONDS_MAX), folder], stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)
            try:
                assert probe.stdout.readline() == "ready\n"
                told = {"LD_PRELOAD": shim(abi), "SAPWOOD_MPI_LEAVES": base, "SAPWOOD_MPI_LEAF_COUNT": str(leaves),
                        "SAPWOOD_MPI_RANKS_PER_LEAF": str(-(-ranks // leaves)), "SAPWOOD_MPI_DUMP_DIR": folder,
                        "PYTHONPATH": out, **(environment or {})}
                start = [*LAUNCHERS[abi], str(ranks)] if launcher else []
                self.code, self.output, self.errors = execute(start + command, told)
                self.probe_output = probe.communicate(timeout=RUN_SECONDS_MAX)[0]
            finally:
                end_session(probe)
            self.seen = self.read(folder, ranks, "seen")
            self.dumped = self.read(folder, ranks, "profile")
            self.events = self.read(folder, ranks, "events", EventFile)

    @staticmethod
    def read(folder, ranks, ending, reader=Profile):
        files = {}
        for rank in range(ranks):
            with contextlib.suppress(FileNotFoundError), open(f"{folder}/rank-{rank}.{ending}", "rb") as file:
                files[rank] = reader(file.read())
        return files


class EachAbi:
    """The tests that all ABIs share; subclasses name theirs."""

    abi = None

    def setUp(self):
        prerequisites.require_mpi(self.abi, LAUNCHERS[self.abi][0], shim(self.abi))
        self.maxDiff = None

    def observed(self, command, ranks=None, **more):
        """Runs it; it must succeed, and leaf and dump must agree to the byte."""
        ranks = ranks or RANKS[self.abi]
        run = Run(self.abi, command, ranks, **more)
        self.assertEqual((run.code, run.errors), (0, ""))
        self.assertEqual(sorted(run.seen), list(range(ranks)))
        self.assertEqual(sorted(run.dumped), list(range(ranks)))
        self.assertEqual(run.probe_output.count("sealed yes\n"), ranks)
        for rank, profile in run.seen.items():
            self.assertEqual(profile.data, run.dumped[rank].data)
            self.assertEqual((profile.rank, profile.size, profile.abi, profile.state),
                             (rank, ranks, ABI_NUMBERS[self.abi], 2))
        return run

    def check(self, name, counts, arguments=(), regions=None, dropped=0, **more):
        run = self.observed([program(self.abi, name), *arguments], **more)
        for rank, profile in run.seen.items():
            self.assertEqual(profile.calls, counts(rank, len(run.seen)), f"rank {rank}")
            self.assertEqual(profile.regions, regions or {})
            self.assertEqual(profile.dropped, dropped)
            self.assertEqual(profile.program, name)
        return run

    def test_a_solver_is_counted_exactly(self):
        self.check("solver", expected.solver, regions={"solve": 1, "halo": 50})

    def test_two_leaves_share_the_ranks(self):
        self.check("solver", expected.solver, regions={"solve": 1, "halo": 50}, leaves=2)

    def test_the_monotonic_clock_gives_the_same_counts(self):
        run = self.check("solver", expected.solver, regions={"solve": 1, "halo": 50},
                         environment={"SAPWOOD_MPI_CLOCK": "monotonic"})
        self.assertEqual([profile.flags & 1 for profile in run.seen.values()], [0] * len(run.seen))

    def test_communicators_fall_into_their_size_class_though_handles_return(self):
        self.check("communicators", expected.communicators)

    def test_every_byte_rule(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-file-") as folder:
            self.check("bytes", expected.bytes_, [os.path.join(folder, "file")])

    def check_transfers(self, run):
        # Open MPI 4.1 gives a truncated message of the own process to MPI_Waitall as a success.
        truncated = 0 if "in status" in transfers_unobserved(self.abi) else 4
        for rank, profile in run.seen.items():
            calls, received = expected.transfers(rank, len(run.seen), truncated)
            waits = {key: value for key, value in profile.calls.items() if key[0] in expected.COMPLETIONS}
            self.assertEqual({name for name, _ in waits}, set(expected.COMPLETIONS))
            self.assertEqual({moved for _, moved in waits.values()}, {0})
            self.assertEqual({key: value for key, value in profile.calls.items() if key not in waits}, calls)
            self.assertEqual(profile.received, received)
            self.assertEqual((profile.untracked, profile.dropped), (expected.TRANSFERS_UNTRACKED, 0))

    def test_receives_count_what_has_come(self):
        run = self.observed([program(self.abi, "transfers")])
        self.check_transfers(run)
        irecv = ("MPI_Irecv", (RANKS[self.abi] - 1).bit_length())
        for profile in run.seen.values():
            # Of each receive that has completed without an error.
            failed = transfers_unobserved(self.abi).count("in status") // len(run.seen)
            completed = profile.calls[irecv][0] - expected.TRANSFERS_UNTRACKED - failed
            self.assertEqual(sum(profile.sizes[irecv]), completed)
        # The program sees the same errors.
        alone, observed = (self.errors_seen(output) for output in (transfers_unobserved(self.abi), run.output))
        self.assertEqual((alone, len(alone)), (observed, 2 * RANKS[self.abi]))

    def errors_seen(self, output):
        return sorted(output.splitlines())

    def test_receives_count_what_has_come_where_messages_are_told_too(self):
        self.check_transfers(self.observed([program(self.abi, "transfers")], environment={"SAPWOOD_MPI_WAITS": "1"}))

    def test_collectives_of_one_handle_end_each_by_its_own_wait(self):
        def ran(environment):
            with tempfile.TemporaryDirectory(prefix="sapwood-mpi-notes-") as folder:
                command = [program(self.abi, "waits"), "completed", os.path.join(folder, "notes")]
                return self.observed(command, environment=environment)

        self.assertEqual(ran({}).events, {}, "nothing was to be recorded")
        run = ran({"SAPWOOD_MPI_WAITS": "1"})
        self.assertEqual(sorted(run.events), list(range(RANKS[self.abi])))
        for file in run.events.values():
            of_world = lambda kind: [event for event in file.events if event.kind == kind and event.space.size > 1]
            started, completed = of_world(STARTED), of_world(COMPLETED)
            self.assertEqual([event.sequence for event in started], list(range(1, 21)))
            self.assertEqual([event.sequence for event in completed], list(range(1, 21)))
            # As the library gives it a request of its own, or one that has completed.
            self.assertIn({event.function for event in completed}, ({"MPI_Wait"}, {"MPI_Ibcast"}))
            # One process waits for none.
            self.assertEqual({event.space for event in file.events if event.kind == COMPLETED}, {started[0].space})

    def test_call_sites_have_the_bytes_of_receives_that_complete_later(self):
        run = self.observed([program(self.abi, "transfers")], environment={"SAPWOOD_MPI_EXTRAS": "call-sites"})
        self.check_transfers(run)
        for profile in run.seen.values():
            self.check_sites(profile)

    def test_threads_lose_nothing(self):
        run = self.check("threads", expected.threads, regions={"call": 4000})
        self.assertTrue(all(profile.flags & 2 for profile in run.seen.values()))

    def test_regions_used_well_and_badly(self):
        run = self.check("regions", expected.regions, regions=expected.REGIONS, dropped=expected.REGIONS_DROPPED)
        for profile in run.seen.values():
            self.assertLessEqual(profile.times["outer"], profile.times["whole"])
            self.assertEqual(profile.times["early"], 0)

    def test_of_a_million_regions_those_with_room_are_counted_and_the_others_dropped(self):
        room = {str(number): 1 for number in range(expected.REGIONS_MAX)}
        self.check("many_regions", expected.regions, regions=room, dropped=1_000_000 - expected.REGIONS_MAX)

    def test_a_program_switches_counting_off_and_on(self):
        run = self.observed([program(self.abi, "levels")])
        for profile in run.seen.values():
            [reductions] = [counts for (name, _), counts in profile.calls.items() if name == "MPI_Allreduce"]
            self.assertEqual(reductions, (15, 15 * 8))
            world = (RANKS[self.abi] - 1).bit_length()
            self.assertEqual((profile.calls["MPI_Irecv", world], profile.calls["MPI_Send", world]), ((2, 9), (1, 9)))
            # Six starts of 7 bytes, one of 11, one of 5 after the pause in which that receive was pending.
            moved = 6 * 7 + 11 + 5
            self.assertEqual((profile.calls["MPI_Send_init", world], profile.calls["MPI_Recv_init", world]),
                             ((3, moved), (3, moved)))
            self.assertEqual((sum(profile.received.values()), profile.untracked), (9 + moved, 0))
            # What gets the handle of the window is another one.
            self.assertEqual(profile.told, {"stays"})

    def test_a_window_has_no_name_of_one_that_was_freed_unseen(self):
        for waits in ("0", "1"):
            with self.subTest(waits=waits):
                run = self.observed([program(self.abi, "names"), "unseen", "1"],
                                    environment={"SAPWOOD_MPI_WAITS": waits})
                for profile in run.seen.values():
                    self.assertIn(profile.told - {"gone"}, ({"same"}, {"another"}))
                    # Where the second window has another handle, nothing tells that the first one is gone.
                    self.assertFalse({"same", "gone"} <= profile.told)

    def test_what_a_program_switches_off_is_numbered_and_not_recorded(self):
        run = self.observed([program(self.abi, "levels")], environment={"SAPWOOD_MPI_WAITS": "1"})
        self.assertEqual(sorted(run.events), list(range(RANKS[self.abi])))
        for rank, file in run.events.items():
            reductions = [event.sequence for event in file.events if event.function == "MPI_Allreduce"]
            # 100 of them were made in between.
            self.assertEqual(reductions, [*range(1, 11), *range(111, 116)])
            sends = [event.sequence for event in file.events if event.function == "MPI_Send"]
            # The first one was sent in between.
            self.assertEqual(sends, [2])
            counted = sum(count for (name, _), (count, _) in run.seen[rank].calls.items() if name == "MPI_Allreduce")
            self.assertEqual(counted, len(reductions))

    def test_receives_are_listed_for_a_call_that_waits_for_them_and_not_for_one_that_tests_them(self):
        for mode, listed in (("wait", 1), ("test", 0)):
            with self.subTest(mode):
                run = self.observed([program(self.abi, "polls"), mode], environment={"SAPWOOD_MPI_WAITS": "1"})
                self.assertEqual([profile.pending for profile in run.seen.values()], [listed] * RANKS[self.abi])

    def test_no_request_is_followed_that_is_made_where_counting_pauses(self):
        for profile in self.observed([program(self.abi, "settled")]).seen.values():
            world = (RANKS[self.abi] - 1).bit_length()
            self.assertEqual((profile.calls["MPI_Irecv", world], profile.calls["MPI_Send", world]), ((2, 20), (2, 20)))
            self.assertEqual((profile.received, profile.untracked), ({("MPI_Irecv", world): 20}, 0))

    def test_a_call_that_finds_no_room_for_its_site_is_dropped_once(self):
        run = self.observed([program(self.abi, "crowded")], environment={"SAPWOOD_MPI_EXTRAS": "call-sites"})
        for profile in run.seen.values():
            listed = [count for (kind, *_), (count, _, _) in profile.tallies.items() if kind == SITE]
            whole = ("MPI_Init", "MPI_Finalize")
            calls = sum(count for (name, _), (count, _) in profile.calls.items() if name not in whole)
            self.assertEqual((sum(listed), profile.tallies_dropped), (2048, calls - 2048))

    def test_an_exit_without_finalize_leaves_table_and_dump(self):
        run = Run(self.abi, [program(self.abi, "unfinalized"), "exit"], 1)
        self.assertEqual(run.seen[0].state, 3)
        self.assertEqual(run.seen[0].calls, expected.unfinalized(0, 1))
        self.assertEqual(run.seen[0].data, run.dumped[0].data)

    def test_mpi_initialised_past_the_shim_is_observed_from_the_first_call(self):
        run = Run(self.abi, [program(self.abi, "lazy")], RANKS[self.abi])
        self.assertEqual((run.code, run.errors), (0, ""))
        for rank, profile in run.seen.items():
            self.assertEqual(profile.calls, expected.lazy(rank, len(run.seen)))
            self.assertEqual(profile.state, 3)
            self.assertEqual(profile.data, run.dumped[rank].data)

    def test_an_mpi_library_outside_the_global_scope_is_found(self):
        command = [os.path.join(out, "tests", "plugin_host"), program(self.abi, "plugin.so")]
        for rank, profile in self.observed(command).seen.items():
            self.assertEqual(profile.calls, expected.plugin(rank, RANKS[self.abi]))

    def test_a_killed_rank_leaves_its_table_with_the_leaf(self):
        ranks = RANKS[self.abi]
        run = Run(self.abi, [program(self.abi, "unfinalized"), "kill"], ranks)
        self.assertNotEqual(run.code, 0)
        self.assertEqual(sorted(run.seen), list(range(ranks)))
        self.assertEqual(run.seen[1].state, 1)
        self.assertEqual(run.seen[1].calls, expected.unfinalized(1, ranks))
        self.assertNotIn(1, run.dumped)

    def tool(self, name):
        return program(self.abi, name + ".so")

    def test_sizes_of_messages_are_counted_by_powers_of_two(self):
        world = (RANKS[self.abi] - 1).bit_length()
        for profile in self.observed([program(self.abi, "solver")]).seen.values():
            sizes = {name: {at: calls for at, calls in enumerate(row) if calls}
                     for (name, size), row in profile.sizes.items() if size == world}
            self.assertEqual(sizes["MPI_Bcast"], {6: 1})
            # Half of the transfers of the first and the last rank are with MPI_PROC_NULL.
            whole = 0 < profile.rank < RANKS[self.abi] - 1
            self.assertEqual(sizes["MPI_Sendrecv"], {4: 200} if whole else {0: 100, 4: 100})
            self.assertEqual(sizes["MPI_Allreduce"], {4: 50, 5: 20})
            self.assertEqual(sizes["MPI_Irecv"], {8: 40} if whole else {0: 20, 8: 20})
            for key, row in profile.sizes.items():
                # An exchange has two messages.
                self.assertEqual(sum(row), profile.calls[key][0] * (2 if key[0] == "MPI_Sendrecv" else 1), key)
                low = sum(calls * (at if at < 2 else 2 ** (at - 2) + 1) for at, calls in enumerate(row))
                high = sum(calls * (at if at < 2 else 2 ** (at - 1)) for at, calls in enumerate(row))
                self.assertTrue(low <= profile.calls[key][1] <= high, key)
            self.assertNotIn("MPI_Barrier", sizes)

    def test_finalize_is_measured_and_the_process_tells_what_it_has_used(self):
        for profile in self.observed([program(self.abi, "solver")]).seen.values():
            self.assertGreater(profile.times[("MPI_Finalize", 255)], 0)
            self.assertGreater(profile.usage["resident_bytes_max"], 1 << 20)
            self.assertGreater(profile.usage["minor_faults"], 0)
            self.assertGreaterEqual(profile.usage["cpu_user_ns"] + profile.usage["cpu_system_ns"], profile.started_cpu_ns)

    def test_a_tool_behind_the_shim_gets_every_call(self):
        ranks = RANKS[self.abi]
        preload = {"LD_PRELOAD": f"{shim(self.abi)}:{self.tool('pmpi_tool')}"}
        run = self.check("solver", expected.solver, regions={"solve": 1, "halo": 50}, environment=preload)
        self.assertEqual(run.output.count("tool: 70 reductions\n"), ranks)
        self.assertEqual([profile.taken_functions for profile in run.seen.values()], [0] * ranks)

    def test_a_tool_in_front_of_the_shim_is_named_with_what_it_takes(self):
        ranks = RANKS[self.abi]
        preload = {"LD_PRELOAD": f"{self.tool('pmpi_tool')}:{shim(self.abi)}"}
        run = Run(self.abi, [program(self.abi, "solver")], ranks, environment=preload)
        self.assertEqual((run.code, run.output.count("tool: 70 reductions\n")), (0, ranks))
        self.assertRegex(run.errors, r"\Asapwood: \S*pmpi_tool.so takes 2 MPI functions before the shim, .*\n\Z")
        for rank, profile in run.seen.items():
            self.assertEqual((profile.taken_functions, profile.state), (2, 3))
            counts = expected.solver(rank, ranks)
            untaken = {key: value for key, value in counts.items() if key[0] not in ("MPI_Allreduce", "MPI_Finalize")}
            self.assertEqual(profile.calls, untaken)

    def test_a_tool_that_takes_every_call_of_a_program_leaves_a_line(self):
        preload = {"LD_PRELOAD": f"{self.tool('pmpi_all')}:{shim(self.abi)}"}
        command = [*LAUNCHERS[self.abi], "2", program(self.abi, "call_cost"), "10"]
        unserved = f"sapwood-mpi-test-{os.getpid()}-unserved"
        told = {**preload, "SAPWOOD_MPI_LEAVES": unserved, "SAPWOOD_MPI_RANKS_PER_LEAF": "4", "SAPWOOD_MPI_LEAF_COUNT": "1"}
        code, _, errors = execute(command, told)
        self.assertEqual(code, 0, errors)
        self.assertRegex(errors, r"\Asapwood: no MPI call was seen: \S*pmpi_all.so takes 4 MPI functions before the shim.*\n\Z")

    def check_sites(self, profile):
        """Call sites together have the calls, time and bytes of all functions."""
        counted = {}
        for (kind, name, size, _, _), (count, time_ns, moved) in profile.tallies.items():
            before = counted.get((name, size), (0, 0, 0))
            if kind == SITE:
                counted[(name, size)] = (before[0] + count, before[1] + time_ns, before[2] + moved)
        calls = {key: (value[0], profile.times[key], value[1]) for key, value in profile.calls.items()
                 if key[0] not in ("MPI_Init", "MPI_Finalize")}
        self.assertEqual(counted, calls)
        self.assertEqual(profile.tallies_dropped, 0)

    def test_peers_sites_and_communicators_are_tallied_on_demand(self):
        ranks = RANKS[self.abi]
        extras = {"SAPWOOD_MPI_EXTRAS": "call-sites,peers,communicators"}
        run = self.observed([program(self.abi, "peers")], environment=extras)
        for rank, profile in run.seen.items():
            peers = {key[3]: (count, moved) for key, (count, _, moved) in profile.tallies.items() if key[0] == PEER}
            self.assertEqual(peers, expected.peers(rank, ranks))
            sites = [(key, value) for key, value in profile.tallies.items() if key[0] == SITE]
            self.assertTrue(all(key[4].endswith("/peers") for key, _ in sites), sites)
            self.check_sites(profile)

    def test_nothing_is_tallied_that_was_not_asked_for(self):
        for profile in self.observed([program(self.abi, "peers")]).seen.values():
            self.assertEqual((profile.tallies, profile.extras), ({}, 0))

    def unobserved(self, environment, command=None):
        ranks = RANKS[self.abi]
        command = command or [*LAUNCHERS[self.abi], str(ranks), program(self.abi, "solver")]
        return execute(command, {"LD_PRELOAD": shim(self.abi), "SAPWOOD_MPI_RANKS_PER_LEAF": "4",
                                 "SAPWOOD_MPI_LEAF_COUNT": "1", **environment})

    def test_without_a_leaf_the_program_runs_on(self):
        told = {"SAPWOOD_MPI_LEAVES": f"sapwood-mpi-test-{os.getpid()}-unserved"}
        code, _, errors = self.unobserved(told)
        self.assertEqual((code, errors), (0, "sapwood: rank 0: no leaf listens; the program runs on unobserved\n"))
        code, _, errors = self.unobserved({**told, "SAPWOOD_VERBOSE": "1"})
        self.assertEqual((code, errors.count("no leaf listens")), (0, RANKS[self.abi]))

    def test_a_bad_environment_is_named(self):
        code, _, errors = self.unobserved({"SAPWOOD_MPI_LEAVES": "x", "SAPWOOD_MPI_LEAF_COUNT": "none"})
        self.assertEqual((code, errors.count("must be numbers from 1")), (0, 1))
        code, _, errors = self.unobserved({"SAPWOOD_MPI_LEAVES": "x" * 200})
        self.assertEqual((code, errors.count("too long for a socket name")), (0, 1))

    @contextlib.contextmanager
    def silent_leaf(self, name):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"\0{name}-0")
            listener.listen(0)
            yield

    def test_a_leaf_that_does_not_accept_delays_no_rank(self):
        name = f"sapwood-mpi-test-{os.getpid()}-busy"
        with self.silent_leaf(name), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as first:
            first.connect(f"\0{name}-0")
            code, _, errors = self.unobserved({"SAPWOOD_MPI_LEAVES": name}, [program(self.abi, "solver")])
        self.assertEqual((code, errors.count("too busy to accept")), (0, 1))

    def test_a_leaf_of_another_user_gets_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be another user")
        name = f"sapwood-mpi-test-{os.getpid()}-other"
        os.seteuid(65534)
        try:
            listener = self.enterContext(self.silent_leaf(name))
        finally:
            os.seteuid(0)
        code, _, errors = self.unobserved({"SAPWOOD_MPI_LEAVES": name}, [program(self.abi, "solver")])
        self.assertEqual((code, errors.count("belongs to another user")), (0, 1), listener)

    def test_a_dump_folder_that_is_not_there_is_named(self):
        code, _, errors = self.unobserved({"SAPWOOD_MPI_DUMP_DIR": "/nonexistent"})
        self.assertEqual((code, errors.count("cannot write /nonexistent/rank-")), (0, RANKS[self.abi]))

    def refuses(self, other, *names):
        for name in names:
            code, output, errors = execute([program(other, name)], {"LD_PRELOAD": shim(self.abi)})
            self.assertEqual((code, output), (2, ""), name)
            self.assertRegex(errors, rf"\Asapwood: this program runs on .*preload libsapwood-mpi-{other}\.so instead\n\Z")

    def test_the_shim_of_another_abi_is_refused(self):
        for other in sorted(COMPILERS.keys() - {self.abi}):
            if os.path.exists(shim(other)):
                with self.subTest(other):
                    self.refuses(other, "solver")

    def test_programs_that_are_not_mpi_are_left_alone(self):
        self.assertEqual(execute(["bash", "-c", "echo here"], {"LD_PRELOAD": shim(self.abi)}), (0, "here\n", ""))

    def test_a_program_that_looks_for_an_mpi_library_does_not_take_the_shim_for_one(self):
        # As mpi4py of PyPI does, which loads a library itself where there is none.
        text = "import ctypes; print(hasattr(ctypes.CDLL(None), 'MPI_Get_version'))"
        self.assertEqual(execute([SYSTEM_PYTHON, "-c", text], {"LD_PRELOAD": shim(self.abi)}), (0, "False\n", ""))

    def test_nothing_is_allocated_where_a_process_without_mpi_exits(self):
        told = {"LD_PRELOAD": shim(self.abi), "SAPWOOD_MPI_LEAVES": "none"}
        self.assertEqual(execute([os.path.join(out, "tests", "exits_in_malloc")], told), (0, "", ""))

    def test_the_shim_exports_its_wrappers_and_nothing_else(self):
        listed = subprocess.run(["nm", "-D", shim(self.abi)], capture_output=True, text=True, check=True).stdout
        symbols = [line.split() for line in listed.splitlines()]
        defined = {words[-1] for words in symbols if words[-2] in "TDBR"}
        wanted = set(header.functions(COMPILERS[self.abi]))
        fortran = {name for name in defined if re.fullmatch(r"mpi_\w+_", name)}
        self.assertEqual(defined - fortran, wanted | {"MPI_Pcontrol"} | {
            "sapwood_region_begin", "sapwood_region_end", "sapwood_round", "sapwood_advice", "sapwood_advice_event",
            "sapwood_mpi_hops"})
        self.check_fortran_names(fortran)
        undefined = {words[-1] for words in symbols if words[-2] == "U"}
        self.assertEqual([name for name in undefined if "mpi" in name.lower()], [])


    def persistent(self, case):
        """A run that starts a persistent reduction and a broadcast 50 times each; and the identities of the two, which
        all ranks have. Each counts its own starts."""
        run = self.observed([program(self.abi, "persistent"), case], environment={"SAPWOOD_MPI_WAITS": "1"})
        self.assertEqual(sorted(run.events), list(range(RANKS[self.abi])))
        starts = []
        for rank in sorted(run.events):
            of_rank = {}
            for event in run.events[rank].events:
                if event.kind == STARTED:
                    self.assertEqual(event.space.handle, 0, "its request is freed")
                    of_rank.setdefault((event.function, event.space.identity), []).append(event.sequence)
            starts.append(of_rank)
        self.assertEqual(starts, [starts[0]] * len(starts))
        numbers = list(range(1, 51))
        self.assertEqual([(function, starts[0][function, identity]) for function, identity in sorted(starts[0])],
                         [("MPI_Allreduce_init", numbers), ("MPI_Bcast_init", numbers)])
        return run, {identity for _, identity in starts[0]}

    def test_persistent_collectives_are_counted_and_recorded_at_each_start(self):
        run, identities = self.persistent("both")
        self.assertEqual(len(identities), 2)
        row = (RANKS[self.abi] - 1).bit_length()
        rounds, (reduction, broadcast) = 50, ("MPI_Allreduce_init", "MPI_Bcast_init")
        for rank, file in run.events.items():
            calls = run.seen[rank].calls
            self.assertEqual((calls[reduction, row], calls[broadcast, row]), ((1, rounds * 16), (1, rounds * 4)))
            self.assertEqual((run.seen[rank].received, run.seen[rank].untracked), ({}, 0))
            started = [event for event in file.events if event.kind == STARTED]
            self.assertEqual([event.function for event in started], [reduction, broadcast] * rounds)
            # The bytes of this process, and 1.
            self.assertEqual([event.tag for event in started], [17, 5] * rounds)
            self.assertEqual({event.peer for event in started[1::2]}, {RANKS[self.abi] - 1})
            completed = [event for event in file.events if event.kind == COMPLETED]
            self.assertEqual({(event.space.identity, event.sequence) for event in completed},
                             {(identity, number) for identity in identities for number in range(1, rounds + 1)})
            self.assertEqual(len(completed), 2 * rounds)
            self.assertEqual({event.function for event in completed}, {"MPI_Waitall", "MPI_Test"})

    def test_persistent_collectives_may_be_started_in_any_order_before_and_behind_others(self):
        run, identities = self.persistent("orders")
        wanted = [(("MPI_Allreduce" if number % 2 == 0 else "MPI_Barrier"), number) for number in range(1, 101)]
        for file in run.events.values():
            called = [event for event in file.events if event.kind == COLLECTIVE]
            self.assertEqual([(event.function, event.sequence) for event in called], wanted)
            identities.add(called[0].space.identity)
        self.assertEqual(len(identities), 3)

    def test_each_collective_of_the_header_is_recorded(self):
        declared = set(header.functions(COMPILERS[self.abi]))
        _, rows = table.read(os.path.join(HERE, "..", "functions.table"))
        collectives = {name for name, row in rows.items() if row.group == "collective"} & declared
        self.assertEqual(collectives, (FORMS | PERSISTENT) & declared)
        self.assertLessEqual({f"MPI_{name}" for name in COLLECTIVES}, collectives)
        with open(os.path.join(out, f"wrappers_{self.abi}.c"), encoding="utf-8") as file:
            form = re.compile(r"^SAPWOOD_EXPORT \w+ (\w+)\(.*?\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
            wrappers = form.findall(file.read())
        # By its symbol, in C and in Fortran: the function whose call a wrapper notes, and the one that it records.
        numbers = {row.id: name for name, row in rows.items()}
        entered = {symbol: numbers[int(found[1])] for symbol, text in wrappers
                   if (found := re.search(r"sapwood_enter\((\d+), ", text))}
        recorded = {symbol: numbers[int(found[1])] for symbol, text in wrappers
                    if (found := re.search(r"sapwood_collective\(activity, (\d+), ", text))}
        self.assertEqual(recorded, {symbol: name for symbol, name in entered.items() if name in FORMS})
        self.assertEqual({name for symbol, name in recorded.items() if symbol == name}, FORMS & declared)
        # Of a persistent one what its starts record is kept with its request.
        made = (r"sapwood_persistent_made\(&\(struct sapwood_posting\)\{\.function = (\d+), "
                r".*SAPWOOD_PERSISTENT_COLLECTIVE\)")
        kept = {symbol: numbers[int(found[1])] for symbol, text in wrappers if (found := re.search(made, text))}
        self.assertEqual(kept, {symbol: name for symbol, name in entered.items() if name in PERSISTENT})
        self.assertEqual({name for symbol, name in kept.items() if symbol == name}, PERSISTENT & declared)


class WithFortran(EachAbi):
    """Those of the ABIs that Fortran's bindings belong to."""

    def fortran(self, kind):
        self.check(f"solver_{kind}", expected.fortran, regions={"solve": 1})

    def test_fortran_mpif_h_counts_once(self):
        self.fortran("mpif")

    def test_fortran_use_mpi_counts_once(self):
        self.fortran("usempi")

    def test_fortran_mpi_f08_counts_once(self):
        self.fortran("f08")

    def test_a_fortran_program_of_another_abi_is_refused(self):
        self.refuses({"openmpi": "mpich", "mpich": "openmpi"}[self.abi], "solver_mpif", "solver_f08")

    def check_fortran_names(self, names):
        self.assertTrue({"mpi_init_f08_", "mpi_finalize_f08_"} <= names)


class OpenMpi(WithFortran, unittest.TestCase):
    abi = "openmpi"

    def test_mpi4py(self):
        if subprocess.run([SYSTEM_PYTHON, "-c", "import mpi4py.MPI"], capture_output=True, check=False).returncode:
            self.skipTest("no mpi4py here (Debian: python3-mpi4py)")
        run = self.observed([SYSTEM_PYTHON, os.path.join(HERE, "solver_mpi4py.py")])
        for rank, profile in run.seen.items():
            counts = expected.some_mpi4py(rank, len(run.seen))
            self.assertEqual({key: profile.calls.get(key) for key in counts}, counts)
            self.assertEqual(profile.regions, {"solve": 1})


class Mpich(WithFortran, unittest.TestCase):
    abi = "mpich"

    def test_large_count_functions(self):
        self.check("large", expected.large)


class StandardAbi(EachAbi, unittest.TestCase):
    """What is linked to libmpi_abi.so."""

    abi = "abi"

    def test_large_count_functions(self):
        self.check("large", expected.large)

    def test_a_library_whose_statuses_are_not_those_of_mpich_is_asked(self):
        preload = {"LD_PRELOAD": f"{shim(self.abi)}:{self.tool('own_status')}"}
        run = self.observed([program(self.abi, "transfers")], environment=preload)
        self.assertEqual(run.output.count("a trial of the status was refused\n"), RANKS[self.abi])
        self.check_transfers(run)

    def errors_seen(self, output):
        # MPICH 5 completes the receives beside a failed one where the program wants no statuses only.
        return sorted(line.rsplit(" ", 1)[0] for line in output.splitlines())

    def check_fortran_names(self, names):
        self.assertEqual(names, {"mpi_pcontrol_", "mpi_pcontrol_f08_"})


class TheRunner(unittest.TestCase):
    def test_a_process_that_is_left_is_found_and_ended(self):
        with self.assertRaisesRegex(LeftBehind, "left running by sh"):
            execute(["sh", "-c", "sleep 60 >/dev/null 2>&1 &"], {}, seconds_max=0)


class TheTurns(unittest.TestCase):
    def test_each_test_belongs_to_one_turn(self):
        class Some(unittest.TestCase):
            def test_a(self):
                pass

            @turns.alone("of a test")
            def test_b(self):
                pass

        @turns.alone("of what is below it")
        class Marked:
            pass

        class All(Marked, unittest.TestCase):
            def test_c(self):
                pass

        suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, (Some, All)))
        for turn, expected in (("", "abc"), (turns.SHARED, "a"), (turns.ALONE, "bc")):
            kept = [test.id()[-1] for case in turns.of_turn(suite, turn) for test in case]
            self.assertEqual("".join(kept), expected, turn)

    def test_a_number_draws_an_order_of_classes_and_of_the_tests_in_each(self):
        class One(unittest.TestCase):
            def test_a(self):
                pass

            def test_b(self):
                pass

        class Two(One):
            pass

        suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, (One, Two)))
        self.assertIs(turns.in_order(suite, ""), suite)
        orders = set()
        for number in range(50):
            drawn, again = ([[test.id() for test in case] for case in turns.in_order(suite, str(number))]
                            for _ in range(2))
            self.assertEqual(drawn, again)
            self.assertEqual(sorted(map(sorted, drawn)), [[test.id() for test in case] for case in suite])
            orders.add(str(drawn))
        self.assertEqual(len(orders), 8)

    def test_programs_ask_for_their_turn_and_order(self):
        found = 0
        for path in glob.glob(os.path.join(HERE, "*.py")) + glob.glob(os.path.join(HERE, "..", "*", "tests", "*.py")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if re.search(r"(?m)^ +unittest\.main\(", text):
                self.assertIn("\nload_tests = turns.load_tests\n", text, path)
                found += 1
        self.assertGreater(found, 0)

    def test_goals_that_build_in_one_folder_are_made_one_after_another(self):
        root = os.path.join(HERE, "..", "..", "..")
        for turn, goals in (("", ["check", "truth"]), (turns.SHARED, ["check", "truth-shared"]),
                            (turns.ALONE, ["bypass-check", "truth-alone"])):
            # Lines that call make run even so, here as those of `echo`.
            words = ["make", "--dry-run", "--no-print-directory", "-C", root, "test-mpi", f"TURN={turn}", "MAKE=echo"]
            settings = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=settings)
            self.assertEqual(done.returncode, 0, done.stderr)
            # --keep-going -C bindings/mpi GOAL OUT=FOLDER
            calls = [line.split() for line in done.stdout.splitlines() if line.startswith("--keep-going ")]
            self.assertEqual([call[3:-1] for call in calls], [[goal] for goal in goals], done.stdout)


class TheTable(unittest.TestCase):
    def test_it_knows_every_function_of_the_installed_headers(self):
        done = subprocess.run(["make", "-s", "-C", os.path.join(HERE, ".."), "check-table"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


load_tests = turns.load_tests

if __name__ == "__main__":
    if sys.argv[1:2] == ["--out"]:
        os.environ["SAPWOOD_MPI_TEST_OUT"] = os.path.abspath(sys.argv[2])
        del sys.argv[1:3]
    unittest.main()

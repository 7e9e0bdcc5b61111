"""Programs that stop making progress under `sapwood mpi`, and which rank is named as the reason.

Needs the environment that watched.py names.
"""

import functools
import os
import signal
import subprocess
import tempfile
import unittest

import prerequisites
import turns
import watched
from marks import kill
from paced import Paced
from watched import (COMPILE_SECONDS_MAX, LAUNCHERS, SYSTEM_PYTHON, OneMpi, Watched, compile_text, test_program,
                     watch_until, words_until)

RANKS = 4
LINE = "no MPI call has returned"
STUCK = "sapwood: stuck for "
# Ranks that write to a file; the longest call lasts for 8 s.
SLOW_FILE = os.path.join(watched.HERE, "slow_file.c")
SLOW_DEADLINE_SECONDS = 3
# Ranks 2 and 3 receive from each other, while ranks 0 and 1 exchange messages without an end. Given a file, rank 2
# sends to rank 3 instead once the file is there, and all end a moment later.
PAIRS = """
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, word = 0, goes_on = 1;
    MPI_Comm pair;
    alarm(100);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    if (rank == 2 && argc == 2) {
        while (access(argv[1], F_OK) != 0)
            usleep(10000);
        MPI_Send(&word, 1, MPI_INT, 3, 7, MPI_COMM_WORLD);
    } else if (rank >= 2) {
        MPI_Recv(&word, 1, MPI_INT, 5 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    while (rank < 2 && goes_on) {
        int is_over = argc == 2 && access(argv[1], F_OK) == 0;
        MPI_Allreduce(&is_over, &goes_on, 1, MPI_INT, MPI_MAX, pair);
        goes_on = !goes_on;
        usleep(1000);
    }
    MPI_Finalize();
    return 0;
}
"""
# Rank 1 looks again and again for a message that rank 3 does not send, by the function that it is given.
POLLS = """
#include <mpi.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, word = 0, has_come = 0;
    MPI_Request request;
    alarm(100);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int tests = argc == 2 && strcmp(argv[1], "MPI_Test") == 0;
    if (rank == 1 && tests)
        MPI_Irecv(&word, 1, MPI_INT, 3, 7, MPI_COMM_WORLD, &request);
    while (rank == 1 && !has_come) {
        if (tests)
            MPI_Test(&request, &has_come, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(3, 7, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
# Rank 1 does not come where the others free their window.
WINDOW = """
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static int part;
    int rank;
    MPI_Win window;
    alarm(100);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_name(window, "slots");
    while (rank == 1)
        pause();
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
"""
RECEIVES_FROM_ANY = "from mpi4py import MPI; MPI.COMM_WORLD.recv(source=MPI.ANY_SOURCE)"
# A thread of each rank receives from the next rank, which sends once its first thread has done what it does.
BESIDE = """
import threading, time
from mpi4py import MPI
world = MPI.COMM_WORLD
size, rank = world.size, world.rank
helper = threading.Thread(target=lambda: world.recv(source=(rank + 1) % size, tag=7))
helper.start()
{}
world.send(1, dest=(rank - 1) % size, tag=7)
helper.join()
"""
COMPUTES = BESIDE.format("end = time.monotonic() + 5\nwhile time.monotonic() < end:\n    pass")
JOINS = BESIDE.format("helper.join()")


def end(run, _told):
    run.process.send_signal(signal.SIGTERM)


@turns.alone("which rank computes or sleeps, and for how long, depends on which gets a processor")
class Standstills(OneMpi):
    def still(self, mode, *options, harm=None, command=None, environment=None):
        """Runs a program until its standstill is told; then it is let go, or ended by `harm`."""
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-still-") as folder:
            stop = os.path.join(folder, "stop")

            def act(run, _told):
                open(stop, "x", encoding="utf-8").close() if harm is None else harm(run)

            command = command or [test_program(self.abi, "still"), mode, stop]
            command = [*LAUNCHERS[self.abi], str(RANKS), *command]
            return watch_until((LINE,), act, command, "--interval", "200ms", *options, environment=environment)

    def pairs(self, *options, is_released=False):
        """Runs PAIRS until its verdict is told; then it is let go, or told to end."""
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-pairs-") as folder:
            program, stop = os.path.join(folder, "pairs"), os.path.join(folder, "stop")
            compile_text(self.abi, PAIRS, program)

            def release(_run, _told):
                open(stop, "x", encoding="utf-8").close()

            command = [*LAUNCHERS[self.abi], str(RANKS), program, *([stop] if is_released else [])]
            return watch_until((STUCK,), release if is_released else end, command, "--interval", "200ms", *options)

    def polls(self, program, function):
        """Runs POLLS until the report says that rank 1 polls: at any one moment it may be kept from its processor."""
        barrier = "MPI_Barrier number 1 on MPI_COMM_WORLD"
        statement = f"rank 1 calls {function} over and over, and nothing else, and has not entered {barrier}"

        def end_once_seen(run, told):
            def is_seen():
                profile = run.read_profile()
                return profile and profile["stuck"] and profile["stuck"]["statement"] == statement
            run.wait_for("the rank that polls", is_seen)
            end(run, told)

        command = [*LAUNCHERS[self.abi], str(RANKS), program, function]
        run = watch_until((f"(?m)^{STUCK}.*\n",), end_once_seen, command, "--interval", "200ms", "--deadline", "1s",
                          "--no-live")
        self.assertRegex(run.errors, rf"(?m)^{STUCK}.*: rank 1 .*, and has not entered {barrier}; "
                                     rf"waiting: ranks 0,2-3 in {barrier} for rank 1, for ")
        stuck = run.profile["stuck"]
        self.assertEqual((stuck["finding"], stuck["culprits"]), ("absent", "1"))
        self.assertEqual([(one["ranks"], one["waits_for"]) for one in stuck["waiting"]], [("0,2-3", "1")])

    def slow_file(self, mode, watch=Watched):
        """Runs SLOW_FILE, whose calls last for longer than the deadline; `watch` watches it."""
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-file-") as folder:
            program, file = os.path.join(folder, "slow_file"), os.path.join(folder, "file")
            subprocess.run([f"mpicc.{self.abi}", "-rdynamic", "-o", program, SLOW_FILE], check=True,
                           timeout=COMPILE_SECONDS_MAX)
            command = [*LAUNCHERS[self.abi], str(RANKS), program, mode, file]
            deadline = f"{SLOW_DEADLINE_SECONDS}s"
            return watch(command, "--interval", "200ms", "--deadline", deadline, "--no-live")

    def test_a_rank_that_moves_data_in_a_call_on_a_file_does_not_wait_and_those_that_wait_for_it_are_not_stuck(self):
        for mode, function in (("alone", "MPI_File_write"), ("together", "MPI_File_write_at_all")):
            with self.subTest(mode):
                run = self.slow_file(mode)
                self.assertEqual((run.code, run.profile["standstills"]), (0, []), run.errors)
                self.assertEqual((run.profile["stuck"], run.profile["passed"]), (None, 0), run.errors)
                for words in (LINE, STUCK, "all ranks wait"):
                    self.assertNotIn(words, run.errors)
                # Had it not lasted for longer than the deadline, nothing would be said in any case.
                [event] = [event for event in run.profile["events"] if event["name"] == function]
                self.assertGreater(event["time_ns"]["max"], 2 * SLOW_DEADLINE_SECONDS * 1e9)

    def test_ranks_that_write_together_and_move_no_data_wait_for_the_one_that_does_not_come(self):
        run = self.slow_file("missed", watch=functools.partial(watch_until, (STUCK,), end))
        [line] = [line for line in run.errors.splitlines() if line.startswith(STUCK)]
        self.assertRegex(line, r"rank 1 .*, and has not entered MPI_File_write_at_all number 2 on /\S+/file; ")
        self.assertRegex(line, r"waiting: ranks 0,2-3 in MPI_File_write_at_all number 2 on /\S+/file for rank 1, for ")
        stuck = run.profile["stuck"]
        self.assertEqual((stuck["finding"], stuck["culprits"]), ("absent", "1"))
        [waiting] = stuck["waiting"]
        self.assertEqual((waiting["ranks"], waiting["waits_for"]), ("0,2-3", "1"))
        self.assertRegex(waiting["communicator"], r"^/\S+/file$")
        activities = [one for record in run.rounds for one in record["activities"]]
        inside = [one for one in activities if one["function"] == "MPI_File_write_at_all"]
        self.assertEqual({one["communicator"] for one in inside}, {waiting["communicator"]})

    def test_ranks_that_wait_where_they_free_a_window_are_told_with_its_name(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-window-") as folder:
            program = os.path.join(folder, "window")
            compile_text(self.abi, WINDOW, program)
            command = [*LAUNCHERS[self.abi], str(RANKS), program]
            run = watch_until((STUCK,), end, command, "--interval", "200ms", "--deadline", "1s", "--no-live")
        [line] = [line for line in run.errors.splitlines() if line.startswith(STUCK)]
        self.assertRegex(line, "waiting: ranks 0,2-3 in MPI_Win_free number 1 on slots for rank 1, for ")
        stuck = run.profile["stuck"]
        self.assertEqual((stuck["finding"], stuck["culprits"]), ("absent", "1"))
        activities = [one for record in run.rounds for one in record["activities"]]
        inside = [one for one in activities if one["function"] == "MPI_Win_free"]
        self.assertEqual({one["communicator"] for one in inside}, {"slots"})

    def test_ranks_that_wait_for_a_persistent_collective_are_told_with_its_communicator_and_its_function(self):
        program = prerequisites.built(watched.library_folder(), f"{self.abi}/persistent")
        # Once the communicator is freed its name is that of the request alone.
        for case in ("skips", "freed"):
            with self.subTest(case):
                command = [*LAUNCHERS[self.abi], str(RANKS), program, case]
                options = ("--waits", "--interval", "200ms", "--deadline", "1s", "--no-live")
                run = watch_until((STUCK,), end, command, *options)
                activities = [one for record in run.rounds for one in record["activities"]]
                inside = [one for one in activities if one["function"] == "MPI_Wait" and one["is_long"]]
                self.assertEqual({one["communicator"] for one in inside}, {"row (for MPI_Allreduce_init)"}, run.errors)

    def test_a_rank_that_polls_without_an_end_is_named_with_what_it_calls_and_those_that_wait_for_it(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-polls-") as folder:
            program = os.path.join(folder, "polls")
            compile_text(self.abi, POLLS, program)
            for function in ("MPI_Test", "MPI_Iprobe"):
                with self.subTest(function):
                    self.polls(program, function)

    def test_ranks_that_are_deadlocked_while_others_work_are_named_on_standard_error_and_in_the_report(self):
        run = self.pairs("--quiet", "--deadline", "1s")
        self.assertNotIn(LINE, run.errors, "ranks 0 and 1 work")
        [line] = [line for line in run.errors.splitlines() if line.startswith(STUCK)]
        self.assertIn("deadlock in a ring of 2 ranks: ", line)
        for one, other in ((2, 3), (3, 2)):
            self.assertIn(f"{one} waits for {other} (MPI_Recv on MPI_COMM_WORLD)", line)
            self.assertIn(f"waiting: rank {one} in MPI_Recv on MPI_COMM_WORLD tag 7 for rank {other}, for ", line)
        stuck = run.profile["stuck"]
        self.assertEqual((stuck["finding"], stuck["culprits"], sorted(stuck["ring"])), ("ring", "2-3", [2, 3]))
        waiting = sorted((one["ranks"], one["function"], one["waits_for"]) for one in stuck["waiting"])
        self.assertEqual(waiting, [("2", "MPI_Recv", "3"), ("3", "MPI_Recv", "2")])
        self.assertGreaterEqual(min(one["longest_s"] for one in stuck["waiting"]), 0.5)
        self.assertEqual((run.profile["passed"], run.profile["standstills"]), (0, []))
        self.assertRegex(run.report, r"(?m)^stuck +seen at [0-9.]+ s\n +stuck for .*: deadlock in a ring of 2 ranks: ")

    def test_a_verdict_after_which_the_ranks_go_on_is_counted(self):
        run = self.pairs("--deadline", "1s", is_released=True)
        self.assertEqual(run.code, 0, run.errors)
        [line] = [line for line in run.errors.splitlines() if line.startswith(STUCK)][:1]
        self.assertRegex(line, "rank 2 is sleeping outside MPI for .*, and has not sent the message with tag 7")
        self.assertIsNone(run.profile["stuck"])
        self.assertGreaterEqual(run.profile["passed"], 1)
        self.assertRegex(run.report, r"(?m)^stuck +ranks were found waiting (once|several times) before, and went on")

    def line(self, run):
        lines = [line for line in run.errors.splitlines() if LINE in line and line.startswith("sapwood: ")]
        self.assertEqual(len(lines), 1, run.errors)
        return lines[0]

    def test_a_deadlock_is_named_with_function_communicator_peers_and_region(self):
        run = self.still("deadlock", harm=lambda run: run.process.send_signal(signal.SIGTERM))
        self.assertIn("waiting: ranks 0-3 in MPI_Recv on ring in region exchange, with 0-3", self.line(run))
        self.assertIn("all ranks wait", self.line(run))
        # The code is the launcher's, which may be 0 though it was told to end.
        [episode] = run.profile["standstills"]
        [waiting] = episode["waiting"]
        self.assertEqual((waiting["function"], waiting["ranks"], waiting["peers"]), ("MPI_Recv", "0-3", "0-3"))
        self.assertEqual((waiting["communicator"], waiting["region"]), ("ring", "exchange"))
        self.assertEqual(episode["absent"], [])
        self.assertGreaterEqual(waiting["shortest_s"], 0.5)
        # What the ranks were inside when they were ended is in the report.
        lost = [one for one in run.profile["activities"] if one["condition"] == "lost"]
        self.assertEqual([one["function"] for one in lost], ["MPI_Recv"])
        self.waited_to_the_end(run, waiting["shortest_s"])

    def test_of_an_inter_communicator_the_peer_is_told_to_be_of_the_other_group(self):
        run = self.still("between", harm=lambda run: run.process.send_signal(signal.SIGTERM))
        self.assertIn("waiting: ranks 0-3 in MPI_Recv on bridge (peers are of its other group), with 0", self.line(run))

    def test_a_quiet_run_says_who_waits_and_who_died_and_keeps_what_was_seen_before(self):
        run = self.still("deadlock", "--quiet", harm=lambda run: kill(run.processes("still")[:1]))
        self.assertIn("waiting: ranks 0-3 in MPI_Recv on ring in region exchange", self.line(run))
        self.assertRegex(run.errors, r"(?m)^sapwood: ranks? [0-9,-]+ died first, ")
        # The others were ended because of that, one after another: none of them was waited for.
        [episode] = run.profile["standstills"]
        self.assertEqual(([one["ranks"] for one in episode["waiting"]], episode["absent"]), (["0-3"], []))

    def waited_to_the_end(self, run, seconds):
        """The report has the call in which the ranks were ended, at least as long as the standstill said."""
        time = run.profile["time"]
        self.assertGreaterEqual(time["mpi_ns"]["min"], seconds * 1e9)
        self.assertGreaterEqual(time["wall_ns"]["min"], time["mpi_ns"]["min"])
        self.assertIn((1, 0), [(one["mpi_share"], one["parallel"]) for one in run.profile["intervals"]])

    def test_a_stopped_rank_is_named_apart_from_those_that_wait_for_it(self):
        stopped = []

        def harm(run):
            os.kill(stopped[0], signal.SIGCONT)

        def stop_one(run):
            paced.wait_for_ranks(run)
            stopped.append(run.processes("paced")[-1])
            os.kill(stopped[0], signal.SIGSTOP)
            told.append(words_until(run, LINE))
            harm(run)
            paced.end()

        told = []
        with Paced(self.abi, RANKS) as paced:
            run = Watched(paced.command, "--interval", "200ms", while_running=stop_one)
        self.assertEqual(run.code, 0, run.errors)
        [rank] = [rank for rank, dump in run.dumps.items() if dump.pid == stopped[0]]
        self.assertRegex(told[0], rf"not arrived: rank {rank}, stopped (outside MPI|in MPI_\w+ on MPI_COMM_WORLD)")
        self.assertIn("waiting: ", told[0])
        [episode] = run.profile["standstills"][:1]
        self.assertEqual([(one["ranks"], one["condition"]) for one in episode["absent"]], [(str(rank), "stopped")])

    def test_a_program_that_goes_on_has_no_standstill(self):
        def act(run):
            paced.wait_for_ranks(run)
            paced.end()

        with Paced(self.abi, RANKS) as paced:
            run = Watched(paced.command, "--interval", "50ms", while_running=act)
        self.assertEqual((run.code, run.profile["standstills"]), (0, []), run.errors)
        self.assertNotIn(LINE, run.errors)


class OpenMpi(Standstills, unittest.TestCase):
    abi = "openmpi"

    # A rank that may come yet is told of after ten seconds: under one MPI only.
    def test_a_rank_that_computes_is_in_the_report_and_told_only_after_long(self):
        for mode, condition in (("compute", "computing"), ("sleep", "sleeping")):
            run = self.still(mode)
            self.assertEqual(run.code, 0, run.errors)
            self.assertIn("the program is done", run.output)
            self.assertIn("waiting: ranks 0,2-3 in MPI_Barrier on MPI_COMM_WORLD", self.line(run))
            self.assertIn(f"not arrived: rank 1 {condition} outside MPI", self.line(run))
            self.assertNotIn(STUCK, run.errors, "the line has said it")
            [episode] = run.profile["standstills"]
            self.assertGreaterEqual(episode["seen_s"] - episode["began_s"], 10)

    def test_ranks_that_wait_in_a_part_are_told_with_its_size(self):
        run = self.still("part")
        self.assertEqual(run.code, 0, run.errors)
        self.assertIn("rank 3 in MPI_Barrier on a communicator of 2 ranks", self.line(run))
        self.assertIn("ranks 0,2 in MPI_Barrier on MPI_COMM_WORLD", self.line(run))
        self.assertIn("not arrived: rank 1 sleeping outside MPI", self.line(run))

    def test_a_python_program_that_takes_from_any_source_is_told_so(self):
        run = self.still("", command=[SYSTEM_PYTHON, "-c", RECEIVES_FROM_ANY],
                         harm=lambda run: run.process.send_signal(signal.SIGTERM))
        self.assertRegex(self.line(run), r"ranks 0-3 in MPI_(Mprobe|Probe|Recv) on MPI_COMM_WORLD, from any source")

    def test_a_rank_that_computes_beside_a_thread_that_receives_does_not_wait(self):
        command = [*LAUNCHERS[self.abi], "2", SYSTEM_PYTHON, "-c", COMPUTES]
        run = Watched(command, "--interval", "200ms", "--no-live")
        self.assertEqual((run.code, run.profile["standstills"]), (0, []), run.errors)
        self.assertNotIn(LINE, run.errors)
        # Each of them computes for 5 s, while its thread is in MPI.
        self.assertGreater(run.profile["time"]["compute_ns"]["min"], 4.5e9, run.report)

    def test_a_rank_that_only_waits_for_its_thread_waits_with_it(self):
        run = self.still("", command=[SYSTEM_PYTHON, "-c", JOINS],
                         harm=lambda run: run.process.send_signal(signal.SIGTERM))
        self.assertIn("all ranks wait", self.line(run))


class Mpich(Standstills, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

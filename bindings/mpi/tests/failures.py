"""Harms runs of `sapwood mpi` in every way that must not matter, and in those that must be named.

Whatever dies, the program's results and exit code survive as far as the program does, the report
says which ranks are missing, and nothing is left running. Needs the environment that watched.py names.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import turns
import watched
from marks import kill
from paced import Paced
from watched import (LAUNCHERS, SAY_HERE, SYSTEM_PYTHON, Watched, compile_text, has_mpi, library_folder, sapwood,
                     shim_of, test_program)

ABI = "openmpi"
RANKS = 4
SHORT = ["--interval", "50ms", "--quiet"]
# A launcher that writes by which name it was started, and becomes the real one. If it is asked for its version, it
# writes nothing.
NAMED_LAUNCHER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--version") != 0) {
        FILE *names = fopen(getenv("NAMES"), "a");
        if (names == NULL || fprintf(names, "%s\\n", argv[0]) < 0 || fclose(names) != 0)
            return 9;
    }
    argv[0] = getenv("REAL_LAUNCHER");
    execvp(argv[0], argv);
    return 9;
}
"""
# Two leaves of two ranks, each below a communication process of its own.
TWO_LEAVES = ["--topology", "2x1"]


def setUpModule():
    if not has_mpi(ABI):
        raise unittest.SkipTest("no Open MPI here")


def wait_for_rounds(run):
    """Until several rounds of all ranks are kept, behind which the report has been left."""
    rounds = os.path.join(run.out, "rounds.ndjson")
    run.wait_for("rounds of all ranks", lambda: read(rounds).count(f'"covered":"0-{RANKS - 1}"') > 3)


def launch(*program, ranks=RANKS):
    return [*LAUNCHERS[ABI], str(ranks), *program]


class Harm(unittest.TestCase):
    """Runs a program that works until it is told to stop, and does something to the run."""

    def harmed(self, harm, *options, ends=True):
        """`harm` is called once all ranks count; then the program is told to end if it `ends`."""
        def act(run):
            paced.wait_for_ranks(run)
            harm(run)
            if ends:
                paced.end()

        with Paced(ABI, RANKS) as paced:
            return Watched(paced.command, *SHORT, *(options or TWO_LEAVES), while_running=act)

    def ran_to_its_end(self, run):
        self.assertEqual(run.code, 0, run.errors)
        self.assertIn("the program is done", run.output)
        for dump in run.dumps.values():
            self.assertEqual(dump.state, 2)
        self.assertEqual(len(run.dumps), RANKS)

    def missing(self, run):
        return {loss["ranks"]: loss["reason"] for loss in run.profile["missing"]}

    def test_a_leaf_that_is_killed_takes_its_ranks_from_the_report_only(self):
        run = self.harmed(lambda run: kill(run.processes("sapwood-node", "mpi-leaf")[:1]))
        self.ran_to_its_end(run)
        self.assertEqual(run.profile["ranks_covered"], 2)
        [(ranks, reason)] = self.missing(run).items()
        self.assertIn(ranks, ("0-1", "2-3"))
        self.assertRegex(reason, "^back-end [01] is gone")
        self.assertEqual({row[0] for row in run.rows}, set(map(str, range(RANKS))) - set(expand(ranks)))

    def test_a_communication_process_that_is_killed_costs_no_rank(self):
        run = self.harmed(lambda run: kill(run.processes("sapwood-node", "node")[:1]))
        self.ran_to_its_end(run)
        self.assertEqual((run.profile["ranks_covered"], run.profile["missing"]), (RANKS, []))
        self.assertEqual({row[0] for row in run.rows}, set(map(str, range(RANKS))))

    def test_a_tree_that_is_killed_leaves_the_last_round(self):
        def harm(run):
            kill(run.processes("sapwood-node", "node") + run.processes("sapwood-node", "mpi-leaf"))
        run = self.harmed(harm)
        self.ran_to_its_end(run)
        self.assertIn("the tree did not answer at the end", run.errors)
        covered = run.profile["ranks_covered"]
        self.assertTrue(covered == RANKS or self.missing(run), run.profile["missing"])

    def test_a_leaf_that_hangs_is_waited_for_no_longer_than_its_deadline(self):
        stopped = []

        def harm(run):
            stopped.append(run.processes("sapwood-node", "mpi-leaf")[0])
            os.kill(stopped[0], signal.SIGSTOP)
        run = self.harmed(harm)
        self.ran_to_its_end(run)
        self.assertEqual(run.profile["ranks_covered"], 2)
        self.assertEqual(len(self.missing(run)), 1)

    def test_the_program_outlives_a_front_end_that_is_killed(self):
        run = self.harmed(lambda run: run.process.kill())
        self.assertEqual(run.code, -signal.SIGKILL)
        self.assertIn("the program is done", run.output)
        self.assertEqual(sorted(dump.state for dump in run.dumps.values()), [2] * RANKS)

    def test_one_rank_that_is_killed_stays_in_the_results(self):
        run = self.harmed(lambda run: kill(run.processes("paced")[:1]), ends=False)
        self.assertNotEqual(run.code, 0)
        self.assertEqual((run.profile["ranks_covered"], run.profile["missing"]), (RANKS, []))
        self.assertNotEqual(run.profile["states"]["lost"], "")
        self.counted(run)

    def test_all_ranks_that_are_killed_stay_in_the_results(self):
        run = self.harmed(lambda run: kill(run.processes("paced")), ends=False)
        self.assertNotEqual(run.code, 0)
        self.assertEqual(run.profile["states"]["lost"], f"0-{RANKS - 1}")
        self.counted(run)

    def counted(self, run):
        ranks = {row[0] for row in run.rows if row[4] == "MPI_Allreduce" and int(row[7]) > 0}
        self.assertEqual(ranks, set(map(str, range(RANKS))))

    def test_an_interrupt_reaches_the_program_and_the_report_is_written(self):
        run = self.harmed(lambda run: run.process.send_signal(signal.SIGINT), ends=False)
        self.assertNotEqual(run.code, 0)
        self.assertEqual(run.profile["ranks_covered"], RANKS)

    def test_what_is_watched_hears_interrupts_though_these_tests_do_not(self):
        # As what a shell runs in the background.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        text = "import signal; print('deaf' if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else 'hears')"
        run = Watched([SYSTEM_PYTHON, "-c", text], *SHORT, "--mpi", ABI)
        self.assertEqual(run.output, "hears\n", run.errors)

    def test_every_signal_reaches_the_launcher(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGQUIT):
            # A pause would miss a signal that comes just before it.
            text = (f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(9))\n"
                    "open('begun', 'x')\nwhile True: time.sleep(0.05)")

            def harm(run, number=number):
                run.wait_for("a program that listens", lambda: os.path.exists(os.path.join(run.folder, "begun")))
                run.process.send_signal(number)
            run = Watched([SYSTEM_PYTHON, "-c", text], *SHORT, "--mpi", ABI, while_running=harm)
            self.assertEqual(run.code, 9, f"{number!r}: {run.errors}")

    def test_a_stop_and_a_continue_reach_the_program(self):
        # As a launcher does. By itself the system stops no process whose session has no shell.
        text = ("import os, signal; signal.signal(signal.SIGTSTP, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))\n"
                "import time\nopen('begun', 'x')\nwhile True: time.sleep(0.05)")

        def harm(run):
            run.wait_for("a program that listens", lambda: os.path.exists(os.path.join(run.folder, "begun")))
            [program] = run.processes(os.path.basename(SYSTEM_PYTHON))
            run.process.send_signal(signal.SIGTSTP)
            for pid in (program, run.process.pid):
                run.wait_for("a process that is stopped", lambda pid=pid: state(pid) == "T")
            run.process.send_signal(signal.SIGCONT)
            run.wait_for("a program that goes on", lambda: state(program) != "T")
            os.kill(program, signal.SIGTERM)
        run = Watched([SYSTEM_PYTHON, "-c", text], *SHORT, "--mpi", ABI, while_running=harm)
        self.assertEqual(run.code, 128 + signal.SIGTERM)

    def test_a_second_interrupt_ends_everything_at_once(self):
        def harm(run):
            # A program that hears no signal ends by none.
            run.wait_for("a program that is deaf", lambda: any(is_deaf(pid) for pid in run.processes("python3")))
            interrupt_until_it_ends(run)
        deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
        command = [SYSTEM_PYTHON, "-c", deaf]
        run = Watched(command, *SHORT, "--mpi", ABI, "--ranks", str(RANKS), while_running=harm)
        self.assertEqual(run.code, 130)
        self.assertEqual((run.profile["is_final"], run.profile["ranks_covered"]), (False, 0))

    def test_a_second_interrupt_leaves_what_had_come_though_the_launcher_is_deaf(self):
        # It does not pass the signals on, and goes on when what it has started is ended.
        deaf = 'trap : INT TERM; "$@"; while :; do sleep 0.05; done'

        def harm(run):
            paced.wait_for_ranks(run)
            rounds = os.path.join(run.out, "rounds.ndjson")
            run.wait_for("a round of all ranks", lambda: f'"covered":"0-{RANKS - 1}"' in read(rounds))
            interrupt_until_it_ends(run)

        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-json-") as folder, Paced(ABI, RANKS) as paced:
            file = os.path.join(folder, "profile")
            run = Watched(["sh", "-c", deaf, "sh", *paced.command], *SHORT, "--mpi", ABI, "--ranks", str(RANKS),
                          "--json", file, while_running=harm)
            with open(file, encoding="utf-8") as written:
                self.assertEqual(json.load(written), run.profile)
        self.assertEqual(run.code, 130, run.errors)
        self.assertEqual((run.profile["is_final"], run.profile["ranks_covered"]), (False, RANKS))
        calls = [event["calls"] for event in run.profile["events"] if event["name"] == "MPI_Allreduce"]
        self.assertEqual([one["min"] > 0 for one in calls], [True], calls)
        self.assertIn("the program had not ended when this was written", run.report)

    def test_a_front_end_that_is_killed_leaves_the_file_of_json_as_it_was_before(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-json-") as folder:
            file = os.path.join(folder, "profile")

            def harm(run):
                run.wait_for("a first profile", lambda: os.path.exists(file))
                run.process.kill()
            run = self.harmed(harm, "--json", file)
            self.assertEqual(run.code, -signal.SIGKILL)
            with open(file, encoding="utf-8") as written:
                profile = json.load(written)
        self.assertEqual((profile["schema"], profile["is_final"]), ("sapwood.profile/1", False))

    def test_a_file_of_json_that_cannot_be_written_is_said_once(self):
        run = self.harmed(wait_for_rounds, "--json", "nowhere/profile")
        self.ran_to_its_end(run)
        self.assertEqual(run.errors.count("nowhere/profile"), 1, run.errors)
        self.assertIn("sapwood: cannot write 'nowhere/profile': No such file", run.errors)

    def test_a_file_of_json_that_cannot_be_replaced_is_written_at_the_end_only(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-json-") as folder:
            file = os.path.join(folder, "profile")
            with open(file, "w", encoding="utf-8") as before:
                before.write("before")
            # Root may write into any folder, but what it puts in another user's file's place is not theirs.
            os.chown(file, 12345, 12345) if os.geteuid() == 0 else os.chmod(folder, 0o555)

            def harm(run):
                wait_for_rounds(run)
                while_running.append(read(file))

            while_running = []
            run = self.harmed(harm, "--json", file)
            os.chmod(folder, 0o755)
            self.assertEqual(while_running, ["before"])
            self.assertEqual(json.loads(read(file)), run.profile)
        self.ran_to_its_end(run)
        self.assertTrue(run.profile["is_final"])
        self.assertNotIn("cannot write", run.errors)

    def test_each_round_has_what_is_new_since_the_round_before(self):
        run = self.harmed(wait_for_rounds)
        self.ran_to_its_end(run)
        members = ("calls", "time_ns", "bytes")
        key = lambda event: (event["name"], event["class"], event["communicator_size_class"])
        compared = 0
        self.assertIsNone(run.rounds[0]["event_intervals"])
        for before, record in zip(run.rounds, run.rounds[1:]):
            if record["covered"] != before["covered"]:
                self.assertIsNone(record["event_intervals"])
                continue
            old = {key(event): [event[member]["sum"] for member in members] for event in before["events"]}
            new = {key(event): [event[member]["sum"] for member in members] for event in record["events"]}
            new = {one: [now - then for now, then in zip(sums, old.get(one, [0] * 3))] for one, sums in new.items()}
            told = {key(event): [event[member] for member in members] for event in record["event_intervals"]}
            self.assertEqual(told, {one: sums for one, sums in new.items() if any(sums)})
            compared += bool(told)
        self.assertGreater(compared, 0, run.rounds)

    def test_a_launcher_that_stays_behind_its_ranks_is_killed_once_it_is_told_to_end(self):
        def hang(run):
            [launcher] = run.processes(LAUNCHERS[ABI][0])
            os.kill(launcher, signal.SIGSTOP)
            kill(run.processes("paced"))
            run.process.send_signal(signal.SIGINT)

        run = self.harmed(hang, ends=False)
        self.assertEqual(run.code, 128 + signal.SIGKILL, run.errors)
        stays = "the launcher was asked to end, and stays 10 s after the last of its processes"
        self.assertIn(f"sapwood: {stays}", run.errors)
        self.assertEqual(run.profile["ranks_covered"], RANKS)

    def test_a_launcher_that_is_stopped_is_continued_once_the_user_insists(self):
        def stop(run):
            [launcher] = run.processes(LAUNCHERS[ABI][0])
            os.kill(launcher, signal.SIGSTOP)

            # Told to end again and again.
            deadline = time.monotonic() + watched.RUN_SECONDS_MAX
            while run.process.poll() is None and time.monotonic() < deadline:
                run.process.send_signal(signal.SIGTERM)
                time.sleep(0.02)

        run = self.harmed(stop, ends=False)
        self.assertIn("sapwood: the launcher was asked to end, and is stopped; it is continued", run.errors)
        self.assertEqual(run.profile["ranks_covered"], RANKS, run.errors)

    def test_no_rank_is_the_first_of_those_that_a_time_limit_has_ended(self):
        def expire(run):
            paced.wait_for_ranks(run)
            [limit] = run.processes("timeout")
            # As if its time were over.
            os.kill(limit, signal.SIGALRM)

        with Paced(ABI, RANKS) as paced:
            command = ["timeout", "-s", "TERM", "600", *paced.command]
            run = Watched(command, *SHORT, "--ranks", str(RANKS), while_running=expire)
        self.assertEqual(run.code, 124, run.errors)
        self.assertNotIn("died first", run.errors)
        self.assertNotIn(True, [death["is_first"] for death in run.profile["deaths"]], run.profile["deaths"])


class Sizes(unittest.TestCase):
    """Programs whose number of ranks the command does not say, or says wrongly."""

    def sized(self, command, *options):
        run = Watched([*command, test_program(ABI, "solver")], *SHORT, *options)
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual((run.profile["world_size"], run.profile["missing"]), (len(run.dumps), []))
        self.assertEqual({int(row[0]) for row in run.rows}, set(run.dumps))
        return len(run.dumps)

    def test_a_launcher_that_is_told_no_number(self):
        self.assertGreaterEqual(self.sized(LAUNCHERS[ABI][:-1]), 1)
        self.assertEqual(self.sized([*LAUNCHERS[ABI][:-1], "-H", "localhost:3"]), 3)
        self.assertEqual(self.sized([*LAUNCHERS[ABI][:-1], "--npernode", "5"]), 5)

    def test_a_number_of_ranks_that_is_wrong(self):
        for ranks in ("1", "3", "40"):
            self.assertEqual(self.sized(launch(), "--ranks", ranks), RANKS)
            self.assertEqual(self.sized(launch(), "--ranks", ranks, "--topology", "2x1"), RANKS)


class Starts(unittest.TestCase):
    """Launchers that are started as the user wrote it, and launchers that were not tried."""

    def test_a_launcher_is_started_by_the_name_that_the_user_wrote(self):
        # Open MPI started by a path takes the folder above for its prefix, which it hands to the daemons of all hosts.
        _, *words = launch(SYSTEM_PYTHON, "-c", SAY_HERE, ranks=1)
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-launcher-") as folder:
            program, names = os.path.join(folder, "mpirun"), os.path.join(folder, "names")
            compile_text(ABI, NAMED_LAUNCHER, program)
            told = {"PATH": f"{folder}:{os.environ['PATH']}", "NAMES": names, "REAL_LAUNCHER": LAUNCHERS[ABI][0]}
            for written in (["mpirun"], [program], ["env", "A=1", "mpirun"], ["nice", program]):
                with self.subTest(written):
                    open(names, "w", encoding="utf-8").close()
                    run = Watched([*written, *words], *SHORT, environment=told)
                    self.assertEqual((run.code, run.output, read(names)), (0, "here\n", f"{written[-1]}\n"), run.errors)

    def test_of_a_launcher_that_was_not_tried_a_line_says_so(self):
        # What stands for it starts one rank.
        script = '#!/bin/sh\ntest "$1" != run || shift\nexec "$@"\n'
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-launcher-") as folder:
            told = {"PATH": f"{folder}:{os.environ['PATH']}"}
            for launcher, name in ((["prun"], "prun"), (["flux", "run"], "flux run")):
                program = os.path.join(folder, launcher[0])
                with open(program, "w", encoding="utf-8") as file:
                    file.write(script)
                os.chmod(program, 0o755)
                command = [*launcher, SYSTEM_PYTHON, "-c", f"from mpi4py import MPI; {SAY_HERE}"]
                run = Watched(command, *SHORT, "--mpi", ABI, "--ranks", "1", environment=told)
                self.assertEqual((run.code, run.output), (0, "here\n"), run.errors)
                self.assertEqual(run.profile["ranks_covered"], 1, run.errors)
                line = f"sapwood: '{name}' is supported but untested; if ranks are missing, name their hosts by --hosts"
                self.assertEqual(run.errors.splitlines().count(line), 1, run.errors)
        run = Watched(launch(SYSTEM_PYTHON, "-c", SAY_HERE, ranks=1), *SHORT)
        self.assertNotIn("untested", run.errors)


class Ends(unittest.TestCase):
    """Programs that end in their own ways."""

    def test_the_exit_code_is_the_programs(self):
        run = Watched(launch(SYSTEM_PYTHON, "-c", "raise SystemExit(7)", ranks=1), *SHORT)
        self.assertEqual(run.code, 7)

    def test_a_program_that_ends_before_mpi_init_is_said_to_have_done_so(self):
        run = Watched(launch(SYSTEM_PYTHON, "-c", SAY_HERE), "--no-live")
        self.assertEqual((run.code, run.output), (0, "here\n" * RANKS))
        self.assertEqual((run.profile["ranks_covered"], run.profile["events"]), (0, []))
        self.assertRegex(run.profile["missing"][0]["reason"], "no MPI_Init was seen")
        self.assertIn("no MPI_Init was seen", run.errors)

    def test_a_rank_that_kills_itself_is_lost_and_counted(self):
        run = Watched(launch(test_program(ABI, "unfinalized"), "kill"), *SHORT)
        self.assertNotEqual(run.code, 0)
        self.assertEqual(run.profile["ranks_covered"], RANKS)
        self.assertIn("1", expand(run.profile["states"]["lost"]))
        calls = {row[0]: row[7] for row in run.rows if row[4] == "MPI_Allreduce"}
        self.assertEqual(calls, {str(rank): "100" for rank in range(RANKS)})

    def test_a_program_without_launcher_is_one_rank(self):
        run = Watched([test_program(ABI, "unfinalized"), "exit"], *SHORT)
        self.assertEqual((run.code, run.profile["states"]["exited"]), (0, "0"))

    def test_ranks_that_start_again_under_the_same_numbers_are_counted_and_the_first_ones_are_reported(self):
        program = shlex.join(launch(test_program(ABI, "solver"), ranks=2))
        words = ["sh", "-c", f"{program} && {program}"]
        run = Watched(words, "--mpi", ABI, "--ranks", "2", "--interval", "50ms")
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual((run.profile["ranks_covered"], run.profile["unwatched"]), (2, 2), run.errors)
        self.assertRegex(run.report, "losses +2 more processes are not watched: ")
        form = r"^sapwood: process \d+ is not observed: rank (\d+) is already observed, so it is of a second program$"
        refused = re.findall(form, run.errors, re.MULTILINE)
        self.assertEqual(sorted(refused), ["0", "1"], run.errors)
        calls = {row[0]: row[7] for row in run.rows if row[4] == "MPI_Finalize"}
        self.assertEqual(calls, {"0": "1", "1": "1"})

    def test_of_a_command_that_a_shell_carries_out_the_program_is_what_the_ranks_run(self):
        for command in ("exec {} exit", "{} exit; exit $?"):
            run = Watched(launch("sh", "-c", command.format(test_program(ABI, "unfinalized"))), *SHORT)
            self.assertEqual((run.profile["program"], run.profile["ranks_covered"]), ("unfinalized", RANKS), run.errors)
            self.assertIn("program   unfinalized\n", run.report)

    def test_what_is_preloaded_already_stays_in_front(self):
        text = "import os; print(os.environ['LD_PRELOAD'])"
        run = Watched(launch(SYSTEM_PYTHON, "-c", text, ranks=1), *SHORT, environment={"LD_PRELOAD": "libm.so.6"})
        self.assertEqual(run.output, f"libm.so.6:{shim_of(ABI)}\n")

    def test_what_the_launchers_environment_preloads_goes_to_the_ranks_beside_options_for_variables(self):
        text = "import os; print(os.environ['LD_PRELOAD'])"
        launcher, *words = launch(SYSTEM_PYTHON, "-c", text, ranks=1)
        run = Watched(["env", "LD_PRELOAD=libm.so.6", launcher, "-x", "LD_PRELOAD", *words], *SHORT)
        self.assertEqual(run.output, f"libm.so.6:{shim_of(ABI)}\n", run.errors)

    def test_reductions_that_the_bypass_takes_are_counted(self):
        text = ("from mpi4py import MPI; from array import array; mine, sums = array('d', [1] * 4), array('d', [0] * 4)\n"
                "for _ in range(100): MPI.COMM_WORLD.Reduce(mine, sums)")
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-bypass-") as folder:
            file = os.path.join(folder, "bypass.json")
            bypass = os.path.join(library_folder(), f"libsapwood-bypass-{ABI}.so")
            run = Watched(launch(SYSTEM_PYTHON, "-c", text), *SHORT,
                          environment={"LD_PRELOAD": bypass, "SAPWOOD_BYPASS_JSON": file})
            with open(file, encoding="utf-8") as written:
                taken = {str(one["rank"]): str(one["taken"]["reduce"]) for one in json.load(written)["by_rank"]}
        self.assertEqual(taken, {str(rank): "100" for rank in range(RANKS)})
        self.assertEqual({row[0]: row[7] for row in run.rows if row[4] == "MPI_Reduce"}, taken, run.errors)
        # The bypass has an MPI_Finalize of its own beside that of the shim.
        self.assertEqual((run.code, run.profile["covered"], run.profile["states"]["finalized"]),
                         (0, f"0-{RANKS - 1}", f"0-{RANKS - 1}"), run.errors)
        for text in (run.errors, run.report):
            self.assertNotIn("without MPI_Finalize", text)

    def test_tables_while_the_program_runs_go_to_standard_error(self):
        run = Watched(launch(test_program(ABI, "solver")), "--live", "--interval", "20ms")
        self.assertIn(f"of {RANKS} ranks", run.errors)

    def test_colours_are_written_where_they_are_asked_for(self):
        for choice, is_coloured in (("auto", False), ("never", False), ("always", True)):
            run = Watched(launch(test_program(ABI, "solver")), "--live", "--interval", "20ms", "--color", choice)
            self.assertEqual((run.code, "\x1b[" in run.errors), (0, is_coloured), choice)
        run = Watched(launch(test_program(ABI, "solver")), "--color", "often")
        self.assertEqual(run.code, 2)
        self.assertIn("invalid value 'often' for '--color", run.errors)

    def test_standard_output_is_the_programs_alone(self):
        program = launch(SYSTEM_PYTHON, "-c", f"from mpi4py import MPI; {SAY_HERE}", ranks=2)
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-json-") as folder:
            file = os.path.join(folder, "profile")
            run = Watched(program, "--json", file, "--mpi", ABI)
            self.assertEqual((run.code, run.output), (0, "here\n" * 2))
            with open(file, encoding="utf-8") as written:
                self.assertEqual(json.load(written)["schema"], "sapwood.profile/1")
        self.assertRegex(run.errors, "ranks +2 of 2\n")

    def test_a_report_that_cannot_be_written_changes_no_exit_code(self):
        text = "from mpi4py import MPI; raise SystemExit(0)"
        run = Watched(launch(SYSTEM_PYTHON, "-c", text, ranks=1), *SHORT, "--json", "/dev/full", "--mpi", ABI)
        self.assertEqual(run.code, 0)
        self.assertIn("sapwood: cannot write '/dev/full': No space left", run.errors)

    def limited(self, limit):
        """A run whose ranks may have no file of more bytes, and the lines that say so."""
        # Over TCP Open MPI itself makes no large file.
        command = launch("prlimit", f"--fsize={limit}:{limit}", test_program(ABI, "solver"))
        run = Watched([command[0], "--mca", "btl", "tcp,self", *command[1:]], *SHORT, "--mpi", ABI)
        self.assertEqual(run.code, 0, run.errors)
        return run, [line for line in run.errors.splitlines() if "files are limited" in line]

    def test_a_limit_on_files_costs_the_records_and_not_the_program(self):
        run, said = self.limited(4_000_000)
        self.assertEqual(run.profile["ranks_covered"], RANKS, run.errors)
        [line] = said
        self.assertRegex(line, "^sapwood: calls are not recorded: .* has [0-9]+ bytes, and files are limited to 4000000; "
                               r"raise the limit \(ulimit -f unlimited\)$")

    def test_a_limit_on_files_costs_the_profile_and_not_the_program(self):
        run, said = self.limited(65_536)
        [line] = said
        self.assertRegex(line, "^sapwood: no profile: .*; the program runs on unobserved$")
        self.assertEqual((run.profile["ranks_covered"], run.dumps), (0, {}), run.errors)

    def test_a_profile_of_its_own_that_a_limit_on_files_refuses_ends_no_rank(self):
        # MPI and the shim have made their memory by then; Python ignores the signal until it is told otherwise.
        program = ("from mpi4py import MPI; import resource, signal; MPI.COMM_WORLD.Barrier(); "
                   "signal.signal(signal.SIGXFSZ, signal.SIG_DFL); "
                   "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")
        run = Watched(launch(SYSTEM_PYTHON, "-c", program), *SHORT, "--mpi", ABI)
        self.assertEqual((run.code, run.profile["ranks_covered"], run.dumps), (0, RANKS, {}), run.errors)
        self.assertRegex(run.errors, r"sapwood: cannot write .*rank-0\.profile: File too large\n")

    def test_a_run_that_replaces_the_report_of_an_earlier_one_says_so_in_one_line(self):
        command = launch(test_program(ABI, "solver"), ranks=2)
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-replaced-") as folder:
            first, second = (Watched(command, *SHORT, "--out", folder, out=False) for _ in range(2))
        self.assertEqual((first.code, second.code), (0, 0), second.errors)
        told = f"sapwood: the report of an earlier run in '{folder}' is replaced: "
        said = [[line for line in run.errors.splitlines() if line.startswith(told)] for run in (first, second)]
        self.assertEqual([len(lines) for lines in said], [0, 1], second.errors)
        self.assertRegex(said[1][0], r"report\.txt.*profile\.json|profile\.json.*report\.txt")

    def test_a_command_needs_no_dashes_in_front(self):
        run = Watched(launch(test_program(ABI, "solver")), *SHORT, dashes=False)
        self.assertEqual((run.code, run.profile["ranks_covered"]), (0, RANKS))


class Terminal(unittest.TestCase):
    """A run on a terminal of its own, of 30 lines and 100 columns."""

    def test_the_table_is_repainted_in_place_and_ctrl_c_reaches_the_program(self):
        command = [sapwood(), "mpi", "--interval", "100ms", "--", *launch(test_program(ABI, "paced"), "/nonexistent")]
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(command[0], command)
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        seen = self.interrupt_when(pid, terminal, f"{RANKS} of {RANKS} ranks")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1, seen)
        self.assertRegex(seen, "\x1b\\[1;[0-9]+r", "lines are reserved")
        self.assertRegex(seen, "\x1b\\[r\x1b\\[[0-9]+;1H\x1b\\[J", "they are given back")
        self.assertRegex(seen.rpartition("\x1b")[2], r"ranks +4 of 4\r\n")

    def interrupt_when(self, pid, terminal, text):
        """Reads to the end; types Ctrl-C once the text was seen."""
        seen, has_typed = "", False
        deadline = time.monotonic() + watched.RUN_SECONDS_MAX
        while True:
            if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                raise watched.Hang(f"on a terminal: {seen}")
            try:
                piece = os.read(terminal, 1 << 16)
            except OSError:
                # The other end of a terminal closes with its last holder.
                return seen
            seen += piece.decode(errors="replace")
            if text in seen and not has_typed:
                has_typed = os.write(terminal, b"\x03") == 1


class BadInput(unittest.TestCase):
    """Each is one clear line and exit code 2, before anything starts."""

    def refused(self, *words, environment=None):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-failures-") as folder:
            done = subprocess.run([sapwood(), "mpi", *words], capture_output=True, text=True, check=False, cwd=folder,
                                  env={**os.environ, **(environment or {})}, timeout=watched.RUN_SECONDS_MAX)
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_the_wrong_mpi(self):
        if not has_mpi("mpich"):
            self.skipTest("no MPICH here")
        line = self.refused("--", *launch(test_program("mpich", "solver")))
        self.assertRegex(line, r"^sapwood: wrong MPI: '.*solver' is linked to MPICH, but 'mpirun.openmpi' is Open MPI's")
        line = self.refused("--", *LAUNCHERS["mpich"], "2", test_program(ABI, "solver"))
        self.assertRegex(line, r"is linked to Open MPI, but 'mpirun.mpich' is MPICH's")

    def test_a_program_that_is_not_mpi_at_all(self):
        self.assertRegex(self.refused("--out", "out", "--", *launch("ls")), r"ls' is not an MPI program")

    def test_a_program_that_is_not_there(self):
        self.assertRegex(self.refused("--", *launch("no-such-program")), r"'no-such-program' is in no folder of PATH")
        self.assertRegex(self.refused("--", "/no/mpirun", "-np", "2", "ls"), r"'/no/mpirun'|ls'")

    def test_an_output_folder_that_cannot_be_written(self):
        line = self.refused("--out", "/dev/null/out", "--", *launch(test_program(ABI, "solver")))
        self.assertRegex(line, r"output folder '/dev/null/out' cannot be written")

    def test_a_topology_that_does_not_fit(self):
        options = ["--topology", "2x2", "--ranks-per-leaf", "4"]
        self.assertRegex(self.refused(*options, "--", *launch(test_program(ABI, "solver"))), r"has 4 back-ends")

    def test_a_shim_that_was_not_built(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-failures-") as folder:
            # A copy has no shims beside it.
            copy = os.path.join(folder, "sapwood")
            os.link(sapwood(), copy) if os.stat(folder).st_dev == os.stat(sapwood()).st_dev else None
            if not os.path.exists(copy):
                with open(sapwood(), "rb") as source, open(copy, "wb") as target:
                    target.write(source.read())
                os.chmod(copy, 0o755)
            done = subprocess.run([copy, "mpi", "--", *launch(test_program(ABI, "solver"))], capture_output=True, text=True,
                                  check=False, env={**os.environ, "SAPWOOD_LIB_DIR": folder}, timeout=watched.RUN_SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertRegex(done.stderr, r"the shim for Open MPI, libsapwood-mpi-openmpi.so, is in none of ")


def interrupt_until_it_ends(run):
    """Interrupts a run twice or more often: signals that come together may arrive as one."""
    while run.process.poll() is None:
        run.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(timeout=0.1)


def is_deaf(pid):
    """Whether a process ignores interrupts."""
    ignored = [line.split()[1] for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("SigIgn:")]
    return bool(ignored) and int(ignored[0], 16) >> (signal.SIGINT - 1) & 1 == 1


def state(pid):
    """How a process is, as ps shows it: T when it is stopped."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def expand(text):
    """The ranks of a text such as 0-3,7, as text."""
    parts = [part.split("-") for part in text.split(",") if part]
    return [str(rank) for part in parts for rank in range(int(part[0]), int(part[-1]) + 1)]


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

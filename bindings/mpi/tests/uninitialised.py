"""Ranks that do not come to MPI_Init under `sapwood mpi`: that each is named with its process and what that does.

Needs the environment that watched.py names.
"""

import os
import re
import signal
import tempfile
import unittest

import turns
from watched import LAUNCHERS, OneMpi, compile_text, watch_until

RANKS = 4
# Rank 2 does what the argument names, and never comes to MPI_Init, in which the others wait for it.
LATE = """
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL)
        rank = getenv("PMI_RANK");
    if (argc != 2 || rank == NULL)
        return 2;
    alarm(100);
    if (strcmp(rank, "2") == 0 && strcmp(argv[1], "stops") == 0)
        raise(SIGSTOP);
    for (volatile int is_late = strcmp(rank, "2") == 0; is_late;)
        if (strcmp(argv[1], "sleeps") == 0)
            nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""
NAMED = r"(?m)^sapwood: rank 2 \(pid (\d+) on host (\S+)\) has not called MPI_Init for [^:\n]+: (\w+)( in \w+)?\n"
INSIDE = r"(?m)^sapwood: ranks? [0-9,-]+ (has|have) been in MPI_Init for .+\n"


def program_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


@turns.alone("what a rank does is told once: one that finds no processor does nothing of its own yet")
class Uninitialised(OneMpi):
    def late(self, mode, *wrapper):
        """Runs LATE until its ranks are told of; then rank 2 is killed, which ends the job. Gives the run, the process
        that was named, and the state and the place that were told."""
        told = []

        def act(_run, text):
            pid, _, state, place = re.search(NAMED, text).groups()
            self.assertEqual(program_of(pid), "late", text)
            told.extend([int(pid), state, place])
            os.kill(int(pid), signal.SIGKILL)

        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-late-") as folder:
            program = os.path.join(folder, "late")
            compile_text(self.abi, LATE, program)
            command = [*LAUNCHERS[self.abi], str(RANKS), *wrapper, program, mode]
            run = watch_until((NAMED, INSIDE), act, command, "--interval", "200ms", "--deadline", "1s", "--no-live")
        return run, *told

    def test_a_rank_that_sleeps_before_mpi_init_is_named_and_in_the_report_and_those_that_wait_for_it_are_told(self):
        run, pid, state, place = self.late("sleeps")
        self.assertEqual(state, "sleeping", run.errors)
        # Where it sleeps is known only to users that may trace it.
        self.assertRegex(place or " in nanosleep", r"^ in \w*nanosleep$")
        self.assertEqual(len(re.findall(NAMED, run.errors)), 1, run.errors)
        known = {one["rank"]: one for one in run.profile["uninitialised"]}
        self.assertEqual((known[2]["pid"], known[2]["program"], known[2]["state"]), (pid, "late", "dead"))
        self.assertIsNone(known[2]["in_init_s"])
        self.assertGreaterEqual(known[2]["for_s"], 1)
        inside = [rank for rank, one in known.items() if one["in_init_s"] is not None]
        self.assertTrue(inside and set(inside) <= {0, 1, 3}, known)
        [reason] = [loss["reason"] for loss in run.profile["missing"] if loss["ranks"] == "2"]
        self.assertRegex(reason, rf"^pid {pid} on host \S+ has ended after .*, and no MPI_Init was seen of it: ")
        self.assertRegex(run.report, rf"missing rank 2: pid {pid} on host \S+ has ended after ")

    def test_a_rank_that_computes_before_mpi_init_is_told_so(self):
        run, _, state, _ = self.late("computes")
        self.assertEqual(state, "computing", run.errors)

    def test_a_rank_that_is_stopped_before_mpi_init_is_told_so(self):
        run, _, state, _ = self.late("stops")
        self.assertEqual(state, "stopped", run.errors)

    def test_of_a_rank_that_a_shell_starts_the_program_is_named(self):
        run, _, state, _ = self.late("sleeps", "sh", "-c", '"$0" "$@"; exit $?')
        self.assertEqual(state, "sleeping", run.errors)


class OpenMpi(Uninitialised, unittest.TestCase):
    abi = "openmpi"


class Mpich(Uninitialised, unittest.TestCase):
    abi = "mpich"


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

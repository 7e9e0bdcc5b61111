"""A Jacobi solver over mpi4py: rows of a plate in a ring of ranks, with halos, a residual, and sources that each rank
gives in its turn: a rank that always gave them would be late by itself.

    solver.py FOLDER [KIND RANK STEP]

Rank 0 writes each fifth step to FOLDER/steps. With a kind of fault, rank RANK does in step STEP what that kind says, and
writes the time of CLOCK_MONOTONIC to FOLDER/fault just before.
"""

import os
import socket
import sys
import time

import numpy
from mpi4py import MPI

ROWS, COLUMNS = 6, 25_000
STEPS_MAX = 20_000
# What a slow rank computes more in each step, and how fast the messages of one behind a slow link leave.
SLOW_S = 0.06
# After this time all others wait for a rank in a reduction.
OTHERS_COME_S = 0.2
LINK_BYTES_PER_S = 1_000_000
SO_MAX_PACING_RATE = 47
TAG_OF_NO_MESSAGE = 99

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
folder = sys.argv[1]
kind, at_rank, at_step = (sys.argv[2], int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 2 else ("none", -1, 0)


def note():
    """Says when the fault begins; the file is there at once with all that it has."""
    with open(os.path.join(folder, "fault.new"), "w", encoding="utf-8") as file:
        file.write(str(time.monotonic_ns()))
    os.rename(os.path.join(folder, "fault.new"), os.path.join(folder, "fault"))


def compute_for(seconds):
    """Computes for this much time of a processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def pace_sockets():
    """Has all that this process sends over TCP leave slowly, as over a bad link."""
    for entry in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(entry))) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6) and one.getpeername():
                    one.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, LINK_BYTES_PER_S)
        except OSError:
            continue


def fault(root, step):
    """Does what the kind of fault says, once; gives the root to use."""
    note()
    if kind == "slow_link":
        pace_sockets()
    elif kind == "other_operation":
        world.Barrier()
    elif kind == "other_root":
        return rank if rank != root else (root + 1) % size
    elif kind == "endless_loop":
        while True:
            step += 1
    elif kind == "polling_loop" and step % 2 == 0:
        while not world.Iprobe(MPI.ANY_SOURCE, TAG_OF_NO_MESSAGE):
            pass
    elif kind == "polling_loop":
        request = world.Irecv(numpy.zeros(1), MPI.ANY_SOURCE, TAG_OF_NO_MESSAGE)
        while not request.Test():
            pass
    return root


def main():
    plate = numpy.full((ROWS + 2, COLUMNS), float(rank))
    sources, residual = numpy.zeros(COLUMNS), numpy.zeros(1)
    above, below = (rank - 1) % size, (rank + 1) % size
    if kind == "other_count":
        # mpi4py has calls raise exceptions; in C MPI ends the program.
        world.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    steps = open(os.path.join(folder, "steps"), "w", encoding="utf-8") if rank == 0 else None
    for step in range(1, STEPS_MAX):
        if steps and step % 5 == 0:
            print(step, file=steps, flush=True)
        is_mine, root = rank == at_rank, step % size
        if is_mine and step == at_step:
            root = fault(root, step)
        if is_mine and kind == "slow_compute" and step >= at_step:
            compute_for(SLOW_S)
        world.Bcast(sources, root)
        world.Sendrecv(plate[1], above, 1, plate[-1], below, 1)
        world.Sendrecv(plate[-2], below, 2, plate[0], above, 2)
        inner = plate[1:-1]
        change = 0.9 * ((plate[:-2] + plate[2:]) / 2 - inner) + sources
        inner += change
        own = numpy.abs(change).sum(keepdims=True).reshape(1)
        if is_mine and step == at_step and kind == "other_count":
            own, residual = numpy.zeros(2), numpy.zeros(2)
            time.sleep(OTHERS_COME_S)
        world.Allreduce(own, residual)


main()

"""Hangs in one way after another. FOLDER/work is a pipe that releases the first; rank 2 leaves its number in FOLDER/2
before it stops itself, and nothing ends the last one."""

import os
import signal
import sys

from launched import dist, join, rank, torch

FOLDER = sys.argv[1]


def work():
    """Rank 2 has not begun an asynchronous reduction, and others wait for their works."""
    for _ in range(10):
        dist.all_reduce(x, async_op=True).wait()
    if rank == 2:
        with open(os.path.join(FOLDER, "work"), encoding="utf-8"):
            pass
    dist.all_reduce(x, async_op=True).wait()


def stopped():
    """Rank 2 is stopped before a reduction, in which the others wait for it."""
    if rank == 2:
        partial = os.path.join(FOLDER, ".2")
        with open(partial, "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        os.rename(partial, os.path.join(FOLDER, "2"))
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(x)


def message():
    """Rank 1 waits for a message that rank 0 does not send before the barrier."""
    if rank == 1:
        dist.recv(x, src=0, tag=7)
    dist.barrier()
    if rank == 0:
        dist.send(x, dst=1, tag=7)


join()
x = torch.ones(4)
work()
stopped()
message()

"""Rank 2 is stopped before its 21st reduction, in which the others wait for it."""

import os
import signal

from launched import dist, join, rank, torch

join()
x = torch.ones(4)
for step in range(21):
    if rank == 2 and step == 20:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(x)

"""Reduces until it is ended. Rank 2 writes its process's number to the file that is named."""

import os
import sys

from launched import dist, join, rank, torch

join()
x = torch.ones(4)
for step in range(1_000_000_000):
    dist.all_reduce(x)
    if rank == 2 and step == 20:
        with open(sys.argv[1] + ".part", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])

"""Rank 1 waits for a message that rank 0 does not send before the barrier."""

from launched import dist, join, rank, torch

join()
x = torch.ones(4)
if rank == 1:
    dist.recv(x, src=0, tag=7)
dist.barrier()
if rank == 0:
    dist.send(x, dst=1, tag=7)

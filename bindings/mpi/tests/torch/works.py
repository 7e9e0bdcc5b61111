"""Rank 2 leaves one asynchronous reduction out: the others wait for a work."""

from launched import dist, join, rank, torch

join()
x = torch.ones(4)
for _ in range(10):
    dist.all_reduce(x, async_op=True).wait()
if rank != 2:
    dist.all_reduce(x, async_op=True).wait()
dist.barrier()

"""Calls everything that is observed; rank 0 prints what has come out, at once."""

import os
import sys

from launched import dist, join, rank, size, torch


def collectives(group):
    x = torch.full((4,), float(rank + 1))
    dist.all_reduce(x, group=group)
    dist.broadcast(x, src=0, group=group)
    dist.reduce(x, dst=0, group=group)
    parts = [torch.zeros(4) for _ in range(size)]
    dist.all_gather(parts, x, group=group)
    dist.gather(x, parts if rank == 0 else None, dst=0, group=group)
    dist.scatter(x, parts if rank == 0 else None, src=0, group=group)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, group=group)
    dist.broadcast_object_list(objects, src=0, group=group)
    dist.barrier(group=group)
    dist.monitored_barrier(group=group)
    works = [dist.all_reduce(part, group=group, async_op=True) for part in parts]
    for work in works:
        work.wait()
    return x, objects


def messages():
    x = torch.full((2,), float(rank))
    if rank == 0:
        dist.send(x, dst=1, tag=3)
        dist.isend(x, dst=1, tag=4).wait()
    elif rank == 1:
        dist.recv(x, tag=3)
        dist.irecv(x, src=0, tag=4).wait()
    return x


join()
told = [collectives(None)]
pair = dist.new_group([0, 1])
everyone = dist.new_group()
told.append(collectives(everyone))
messages()
if rank < 2:
    dist.all_reduce(torch.ones(1), group=pair)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
dist.barrier()
if rank == 0:
    os.write(1, f"{told} {sys.argv[1:]} {__name__}\n".encode())
dist.destroy_process_group()

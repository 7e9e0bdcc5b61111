"""Collectives of PyTorch's ranks over Gloo on one host, timed for `sapwood bench collectives`.

    ranks.py FOLDER

Orders, rounds and what rank 0 prints are those of ranks.c beside this file. mpirun starts the ranks and says which
each one is; MPI itself is not used.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

PERIOD = 1021


def value(count, offset, weight):
    return (torch.arange(count, dtype=torch.int64) % PERIOD + offset + 1) * weight


def broadcast(own):
    dist.broadcast(own, src=0)


def allreduce(own):
    dist.all_reduce(own)


def barrier(_own):
    dist.barrier()


OPERATIONS = {"broadcast": broadcast, "allreduce": allreduce, "barrier": barrier}


def serve(operation, count, rounds, rank, ranks):
    """Begin and end of each round, in nanoseconds."""
    carry_out = OPERATIONS[operation]
    is_broadcast = operation == "broadcast"
    weight = 1 if is_broadcast else rank + 1
    total = 1 if is_broadcast else ranks * (ranks + 1) // 2
    begins, ends = [], []
    for at in range(rounds):
        own = torch.full((count,), -1) if is_broadcast and rank else value(count, at, weight)
        dist.barrier()
        begins.append(time.monotonic_ns())
        carry_out(own)
        ends.append(time.monotonic_ns())
        if operation != "barrier" and not torch.equal(own, value(count, at, total)):
            print(f"rank {rank}: a wrong value", file=sys.stderr, flush=True)
            os._exit(1)
    # Only the root's begin counts, and the ends of the others.
    if is_broadcast and rank == 0:
        ends = [0] * rounds
    return begins, ends


def report(operation, begins, ends, rank):
    starts, lasts = torch.tensor(begins), torch.tensor(ends)
    dist.all_reduce(starts, op=dist.ReduceOp.MAX)
    dist.all_reduce(lasts, op=dist.ReduceOp.MAX)
    if operation == "broadcast":
        starts = torch.tensor(begins)
    if rank == 0:
        print(*(lasts - starts).tolist(), flush=True)


def main():
    folder = sys.argv[1]
    rank, ranks = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ["RANK", "SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    # Without waiting for a writer that is gone.
    descriptor = os.open(os.path.join(folder, str(rank)), os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    with open(descriptor) as orders:
        dist.barrier()
        if rank == 0:
            print(flush=True)
        for line in orders:
            if line == "end\n":
                return
            operation, size, rounds = line.split()
            begins, ends = serve(operation, int(size) // 8, int(rounds), rank, ranks)
            report(operation, begins, ends, rank)
    # Without its last order the benchmark was killed, and other ranks may be in a collective.
    print(f"rank {rank}: the benchmark has ended", file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == "__main__":
    main()

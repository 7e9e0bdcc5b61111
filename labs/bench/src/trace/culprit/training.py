"""Trains a small model by torch.distributed over gloo: gradients are summed, a learning rate comes from rank 0.

    python -m sapwood.torch training.py FOLDER [KIND RANK STEP]

Rank 0 writes each fifth step to FOLDER/steps. With a kind of fault, rank RANK does in step STEP what that kind says, and
writes the time of CLOCK_MONOTONIC to FOLDER/fault just before.
"""

import os
import socket
import sys
import time

import torch
import torch.distributed as dist

STEPS_MAX = 20_000
WIDTH = 256
# What a slow rank computes more in each step, and how fast what one behind a slow link sends leaves.
SLOW_S = 0.06
LINK_BYTES_PER_S = 1_000_000
SO_MAX_PACING_RATE = 47

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
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
        dist.barrier()
    elif kind == "other_root":
        return rank if rank != root else (root + 1) % size
    elif kind == "endless_loop":
        while True:
            step += 1
    elif kind == "polling_loop":
        request = dist.irecv(torch.zeros(1), (rank + 1) % size, tag=99)
        while not request.is_completed():
            pass
    return root


def main():
    dist.init_process_group("gloo", rank=rank, world_size=size, init_method=f"file://{folder}/meeting")
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1))
    rate = torch.full((1,), 0.01)
    data = torch.Generator().manual_seed(rank)
    steps = open(os.path.join(folder, "steps"), "w", encoding="utf-8") if rank == 0 else None
    for step in range(1, STEPS_MAX):
        if steps and step % 5 == 0:
            print(step, file=steps, flush=True)
        is_mine, root = rank == at_rank, 0
        if is_mine and step == at_step:
            root = fault(root, step)
        if is_mine and kind == "slow_compute" and step >= at_step:
            compute_for(SLOW_S)
        dist.broadcast(rate, root)
        batch = torch.randn(16, WIDTH, generator=data)
        loss = (model(batch) - batch.mean(1, keepdim=True)).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weights in model.parameters():
                dist.all_reduce(weights.grad)
                weights -= rate * weights.grad / size


main()

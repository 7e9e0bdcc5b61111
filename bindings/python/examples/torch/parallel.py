"""Trains a tiny model by DistributedDataParallel on the CPU, with one rank that comes late in each step.

    sapwood trace why -- mpirun -np 3 python3 -m sapwood.torch parallel.py

names the rank. Ranks find each other by the variables of Open MPI's mpirun or of torchrun.
"""

import argparse
import hashlib
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def join() -> None:
    """Makes the default process group of the launcher's ranks."""
    ompi = os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("OMPI_COMM_WORLD_SIZE")
    os.environ.setdefault("RANK", ompi[0] or "0")
    os.environ.setdefault("WORLD_SIZE", ompi[1] or "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo")


def main() -> None:
    """Trains for some steps; rank 0 prints a digest of the weights."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--slow-rank", type=int, default=1, help="-1 for none")
    parser.add_argument("--late", type=float, default=0.05, help="seconds per step")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    join()
    rank = dist.get_rank()
    layers = torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(rank)
    for _ in range(arguments.steps):
        batch = torch.randn(16, 32, generator=data)
        if rank == arguments.slow_rank:
            time.sleep(arguments.late)
        optimizer.zero_grad()
        loss = (model(batch) - batch.mean(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    if rank == 0:
        weights = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
        print("weights", hashlib.sha256(weights).hexdigest(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

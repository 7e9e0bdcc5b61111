"""Finds the other ranks by the variables of Open MPI's mpirun, or by those of torchrun; gives rank and size."""

import os

import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["RANK"])
size = int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ["WORLD_SIZE"])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def join():
    dist.init_process_group("gloo", rank=rank, world_size=size)

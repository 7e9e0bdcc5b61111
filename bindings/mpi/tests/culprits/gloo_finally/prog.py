"""torch.distributed over gloo: an exception of one rank is on its way through a finally clause with a barrier."""
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29744")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", rank=rank, world_size=size)
gradient = torch.ones(64)
try:
    for step in range(100):
        time.sleep(0.02)
        if rank == 1 and step == 30:
            raise ValueError("a batch without labels")
        dist.all_reduce(gradient)
finally:
    dist.barrier()

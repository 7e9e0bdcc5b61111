"""torch.distributed over gloo: rank 0 writes a checkpoint, and a barrier that is for all is called by it alone."""
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29743")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", rank=rank, world_size=size)
gradient = torch.ones(64)


def save(step):
    if rank != 0 or step != 30:
        return
    time.sleep(0.1)                                    # writes
    dist.barrier()


for step in range(100):
    time.sleep(0.02)
    dist.all_reduce(gradient)
    save(step)

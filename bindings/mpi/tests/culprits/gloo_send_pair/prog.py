"""torch.distributed over gloo: two stages of a pipeline exchange, and in one schedule both send first."""
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29746")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", rank=rank, world_size=size)
out, into = torch.ones(1 << 20), torch.ones(1 << 20)
for step in range(20):
    time.sleep(0.02)
    sends_first = rank == 0 or step == 19
    if rank < 2 and sends_first:
        dist.send(out, dst=1 - rank)
        dist.recv(into, src=1 - rank)
    elif rank < 2:
        dist.recv(into, src=1 - rank)
        dist.send(out, dst=1 - rank)
    dist.barrier()

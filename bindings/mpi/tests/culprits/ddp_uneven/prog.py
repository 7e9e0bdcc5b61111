"""DistributedDataParallel over gloo: one rank has a batch more than the others."""
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29747")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", rank=rank, world_size=size)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in range(20 + (rank == 0)):
    time.sleep(0.02)
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
dist.barrier()

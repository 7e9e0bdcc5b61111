"""torch.distributed over gloo: batches come by a queue from a thread, which on one rank stops to deliver them."""
import queue, threading
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29745")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", rank=rank, world_size=size)
gradient = torch.ones(64)
batches = queue.Queue(maxsize=2)
never = threading.Event()


def load():
    for batch in range(1000):
        if rank == 2 and batch == 30:
            never.wait()
        batches.put(batch)


threading.Thread(target=load, daemon=True).start()
for step in range(1000):
    time.sleep(0.02)
    batches.get()
    dist.all_reduce(gradient)

"""Reductions from Python; prints "mpi4py ok" at rank 0. Run by ranks of an MPI job."""

import array

from mpi4py import MPI

world = MPI.COMM_WORLD
for i in range(50):
    mine = array.array("d", [world.rank + i] * 4)
    total = array.array("d", [0.0] * 4)
    world.Reduce([mine, MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.SUM, root=i % world.size)
    if world.rank == i % world.size:
        assert list(total) == [world.size * i + world.size * (world.size - 1) / 2] * 4, total
if world.rank == 0:
    print("mpi4py ok")

"""The calls of a small solver from Python; run.py knows their counts and bytes."""

from array import array

from mpi4py import MPI

from sapwood_region import region

comm = MPI.COMM_WORLD
size = comm.Get_size()
field, total = array("d", [1.0] * 64), array("d", [0.0] * 64)

with region("solve"):
    for _ in range(25):
        comm.Allreduce([field, 4, MPI.DOUBLE], [total, 4, MPI.DOUBLE], MPI.SUM)
comm.Bcast([field, 7, MPI.DOUBLE], 0)
counts = [2] * size
places = [2 * i for i in range(size)]
comm.Alltoallv([field, counts, places, MPI.DOUBLE], [total, counts, places, MPI.DOUBLE])
requests = [comm.Irecv([total, 50, MPI.DOUBLE], comm.Get_rank(), 5), comm.Isend([field, 3, MPI.DOUBLE], comm.Get_rank(), 5)]
MPI.Request.Waitall(requests)
comm.Barrier()

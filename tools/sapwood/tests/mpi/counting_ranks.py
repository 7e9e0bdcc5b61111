"""Stands for an MPI program: one process that offers the tables of all its ranks, as the shim would.

    counting_ranks.py RANKS

Rank r has called MPI_Barrier (number ID on communicators of 5-8 ranks) r + 1 times, for 1000 (r + 1)
nanoseconds each, and moved 10 r bytes. All but the last rank say that they are finalized; the last
ends without a word. Draws the bytes of bindings/mpi/shim/table.h and handover.h by itself;
no thread tells what it does.
"""

import fcntl
import os
import socket
import struct
import sys

ID, SIZE_CLASS = int(os.environ["BARRIER"]), 3
SLOTS, NAMES = 4, 64
HEADER = 512
TABLE_BYTES = HEADER + 64 * SLOTS + NAMES
SEALS = 0x2 | 0x4  # F_SEAL_SHRINK, F_SEAL_GROW
F_ADD_SEALS = 1033


def table(rank, size):
    state = 1 if rank == size - 1 else 2
    header = struct.pack("<8sIIIIIIII Q64s64s IIIIII QQ40x", b"SWPROFIL", 5, HEADER, rank, size, os.getpid(), 1, state, 0,
                         12345, b"host", b"counting", SLOTS, 1, HEADER + 64 * SLOTS, NAMES, 0, TABLE_BYTES, rank,
                         TABLE_BYTES)
    slot = struct.pack("<QQQQ32x", ID << 8 | SIZE_CLASS, rank + 1, 1000 * (rank + 1) ** 2, 10 * rank)
    # Neither histograms nor tallies: both would begin where the table ends.
    header = header.ljust(256, b"\0") + struct.pack("<IIIII", TABLE_BYTES, 0, 0, TABLE_BYTES, 0)
    return (header.ljust(HEADER, b"\0") + slot).ljust(TABLE_BYTES, b"\0")


def offer(rank, size):
    """Hands a table over; gives what must stay open."""
    memory = os.memfd_create("table", os.MFD_ALLOW_SEALING)
    os.write(memory, table(rank, size))
    fcntl.fcntl(memory, F_ADD_SEALS, SEALS)
    leaf = rank // int(os.environ["SAPWOOD_MPI_RANKS_PER_LEAF"]) % int(os.environ["SAPWOOD_MPI_LEAF_COUNT"])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0{os.environ['SAPWOOD_MPI_LEAVES']}-{leaf}")
    hello = struct.pack("<8sIIIIQ32x", b"SWHELLO1", 3, rank, size, os.getpid(), TABLE_BYTES)
    socket.send_fds(connection, [hello], [memory])
    return connection


ranks = int(sys.argv[1])
connections = [offer(rank, ranks) for rank in range(ranks)]
print("all ranks have counted")
raise SystemExit(3)

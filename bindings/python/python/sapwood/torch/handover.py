"""Hands a rank's memory files to its leaf of the tree; `bindings/mpi/shim/handover.h` draws what travels."""

from __future__ import annotations

import os
import socket
import struct
import time

from .memory import TABLE_BYTES, SharedMemory, high_duplicate

LEAVES = "SAPWOOD_MPI_LEAVES"
BUSY_SECONDS_MAX = 0.2
"""The longest that a program is held up when its leaf is too busy to accept."""
RETRY_SECONDS = 0.005
MESSAGE = "<8sIIIIQIIQ16x"

LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "PMIX_LOCAL_RANK",
    "FLUX_TASK_LOCAL_ID",
    "LOCAL_RANK",
    "SLURM_LOCALID",
)
"""Where launchers tell the number of a rank among those of its host."""


def is_wanted() -> bool:
    """Whether a monitor waits for this program's ranks."""
    return bool(os.environ.get(LEAVES))


def number_from(variable: str, least: int) -> int | None:
    """A number of the environment; none where it is not set, no number or too small."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() and int(text) >= least else None


def connect(name: str) -> socket.socket | None:
    """A connection to the leaf of this name; none where none listens, or it does not accept in time.

    Raises ConnectionError where the system allows none, which no leaf that comes later would change.
    """
    limit = time.monotonic() + BUSY_SECONDS_MAX
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.setblocking(False)
    while True:
        try:
            peer.connect("\0" + name)
            return peer
        except BlockingIOError:
            if time.monotonic() < limit:
                time.sleep(RETRY_SECONDS)
                continue
        except PermissionError as error:
            peer.close()
            raise ConnectionError("the system does not allow a connection to the leaf") from error
        except OSError:
            pass
        peer.close()
        return None


def connect_to_leaf(rank: int) -> socket.socket:
    """A connection to the rank's leaf, or where none listens to the next lower one of the host.

    Raises ConnectionError with one line that says why there is none.
    """
    per_leaf = number_from("SAPWOOD_MPI_RANKS_PER_LEAF", 1)
    count = number_from("SAPWOOD_MPI_LEAF_COUNT", 1)
    if per_leaf is None or count is None:
        raise ConnectionError("SAPWOOD_MPI_RANKS_PER_LEAF and SAPWOOD_MPI_LEAF_COUNT must be numbers from 1")
    told = (number_from(variable, 0) for variable in LOCAL_RANKS)
    on_host = next((number for number in told if number is not None), rank)
    limit = time.monotonic() + (number_from("SAPWOOD_MPI_LEAF_WAIT_MS", 0) or 0) / 1000
    while True:
        for leaf in range(on_host // per_leaf % count, -1, -1):
            peer = connect(f"{os.environ[LEAVES]}-{leaf}")
            if peer is not None:
                return peer
        if time.monotonic() >= limit:
            raise ConnectionError("no leaf listens")
        time.sleep(RETRY_SECONDS)


def hand_over(rank: int, size: int, files: tuple[SharedMemory, SharedMemory, SharedMemory]) -> int:
    """Sends table, control page and event file to the leaf.

    Gives the descriptor of the connection, whose end tells the leaf of this process's end. Raises
    ConnectionError with one line that says why there is none.
    """
    message = struct.pack(MESSAGE, b"SWHELLO1", 3, rank, size, os.getpid(), TABLE_BYTES, 0, 0, len(files[2].bytes))
    with connect_to_leaf(rank) as peer:
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", credentials)[1] != os.geteuid():
            raise ConnectionError("the leaf belongs to another user")
        try:
            socket.send_fds(peer, [message], [file.descriptor for file in files], socket.MSG_NOSIGNAL)
        except OSError as error:
            raise ConnectionError("the leaf closed the connection") from error
        return high_duplicate(peer.fileno())

"""Stands for an MPI program: offers the tables of its ranks, as the shim would.

    counting_ranks.py RANKS                  one process with all ranks, of which the last ends without a word
    counting_ranks.py RANKS fail ROUNDS      a process for each: rank 2 dies, rank 3 hangs, the last one comes late
    counting_ranks.py RANKS flood ROUNDS     as the first, while another process sends wrong hellos without an end
    counting_ranks.py RANKS silent ROUNDS    as the first, behind another process that connects often and says nothing
    counting_ranks.py RANKS alone            rank 0 alone, which no leaf asked for, until standard input ends
    counting_ranks.py RANKS finalized ROUNDS as the first, and lives on until standard input ends
    counting_ranks.py RANKS steps            one process with all ranks, which take a step at each line of its input

ROUNDS is the rounds.ndjson of the run, in which those that are given it look for what has come.

Rank r has called MPI_Barrier (number BARRIER on communicators of 5-8 ranks) r + 1 times, for 1000 (r + 1)
nanoseconds each, and moved 10 r bytes. It has run for 10 + r ms; a rank that is lost was inside of MPI_Barrier for
the last 5 ms. A step takes 10 + 2 r ms more, of which a call of MPI_Barrier takes r + 1 ms. Draws the bytes of
bindings/mpi/shim/table.h and handover.h by itself.
"""

import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
import time

ID, SIZE_CLASS = int(os.environ["BARRIER"]), 3
SLOTS, NAMES, ACTIVITIES = 4, 64, 2
HEADER = 512
NAMES_AT = HEADER + 64 * SLOTS
ACTIVITIES_AT = NAMES_AT + NAMES
TABLE_BYTES = ACTIVITIES_AT + 64 * ACTIVITIES
SEALS = 0x2 | 0x4  # F_SEAL_SHRINK, F_SEAL_GROW
F_ADD_SEALS = 1033
RUNNING, FINALIZED = 1, 2
# Far ahead of the clock of any machine, so that the times of a table are those in it, whenever it is read.
STARTED_NS = 10**18
WAITED_NS, MS = 5_000_000, 1_000_000
WAIT_SECONDS_MAX = 100
# For all of it: no mode waits for more than two rounds.
SECONDS_MAX = 3 * WAIT_SECONDS_MAX
LOOKS_AGAIN_SECONDS = 0.01
WRONG_HELLOS = 5000
# More than a leaf takes before they have said which rank they are of.
SILENT = 300
# Connections of ranks, which stay open as long as their process lives.
OPEN = []


def table(rank, size, state, steps=None):
    """A rank that takes steps is outside of MPI whenever its table is read."""
    is_inside, steps = state == RUNNING and steps is None, steps or 0
    header = struct.pack("<8sIIIIIIII Q64s64s IIIIII QQ II QQQ 8x", b"SWPROFIL", 5, HEADER, rank, size, os.getpid(), 1,
                         state, 0, STARTED_NS, b"host", b"counting", SLOTS, 1, NAMES_AT, NAMES, 0, ACTIVITIES_AT, rank,
                         TABLE_BYTES, ACTIVITIES, 0, 0, 0, 1 << 32)
    slot = struct.pack("<QQQQ32x", ID << 8 | SIZE_CLASS, rank + 1 + steps,
                       1000 * (rank + 1) ** 2 + steps * (rank + 1) * MS, 10 * rank)
    # Neither histograms nor tallies: both would begin where the table ends.
    header = header.ljust(256, b"\0") + struct.pack("<IIIII", TABLE_BYTES, 0, 0, TABLE_BYTES, 0)
    # What two threads do that have no number, so that it counts as time alone: the first one may be in a call.
    end_ns = STARTED_NS + (10 + rank + steps * (10 + 2 * rank)) * MS
    first = (ID, end_ns - WAITED_NS) if is_inside else (0, end_ns)
    activities = struct.pack("<QQ48xQQ48x", *first, 0, end_ns)
    return (header.ljust(HEADER, b"\0") + slot).ljust(ACTIVITIES_AT, b"\0") + activities


def memory(name, content):
    """A sealed memory file."""
    file = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    os.write(file, content)
    fcntl.fcntl(file, F_ADD_SEALS, SEALS)
    return file


def connection_to(leaf):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0{os.environ['SAPWOOD_MPI_LEAVES']}-{leaf}")
    return connection


def offer(rank, size, state, steps=None):
    """Hands a table over; gives its memory."""
    leaf = rank // int(os.environ["SAPWOOD_MPI_RANKS_PER_LEAF"]) % int(os.environ["SAPWOOD_MPI_LEAF_COUNT"])
    connection = connection_to(leaf)
    hello = struct.pack("<8sIIIIQ32x", b"SWHELLO1", 3, rank, size, os.getpid(), TABLE_BYTES)
    file = memory("table", table(rank, size, state, steps))
    socket.send_fds(connection, [hello], [file])
    OPEN.append(connection)
    return file


def offer_all(size):
    """All ranks in this process; the last will end without a word."""
    for rank in range(size):
        offer(rank, size, RUNNING if rank == size - 1 else FINALIZED)


def wait_for_round(path, ranks):
    """Until a round of these ranks has been written."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            if f'"covered":"{ranks}"' in file.read():
                return
        time.sleep(LOOKS_AGAIN_SECONDS)
    raise SystemExit(f"no round of ranks {ranks} within {WAIT_SECONDS_MAX} s")


class Processes:
    """Processes of their own, which end when they are killed or let go."""

    def __init__(self):
        self.waiting, self.held = os.pipe()
        self.pids = []

    def start(self, act):
        """A process that does this, and then waits; gives its number once it has done it."""
        done, doing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                # The end to which nothing is written is held by the first process alone.
                os.close(self.held)
                os.close(done)
                act()
                os.write(doing, b"!")
                os.read(self.waiting, 1)
            finally:
                os._exit(0)
        self.pids.append(pid)
        os.close(doing)
        if not os.read(done, 1):
            raise SystemExit(f"process {pid} has ended early")
        os.close(done)
        return pid

    def kill(self, pid):
        self.pids.remove(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def let_go(self):
        os.close(self.held)
        for pid in self.pids:
            os.waitpid(pid, 0)
        self.pids = []

    def end(self):
        for pid in list(self.pids):
            self.kill(pid)


def fail(size, rounds):
    processes = Processes()

    def start(rank, state):
        return processes.start(lambda: offer(rank, size, state))

    try:
        start(0, FINALIZED)
        start(1, FINALIZED)
        dying, hanging = start(2, RUNNING), start(3, RUNNING)
        processes.kill(dying)
        os.kill(hanging, signal.SIGSTOP)
        wait_for_round(rounds, "0-3")
        start(4, FINALIZED)
        wait_for_round(rounds, "0-4")
        processes.kill(hanging)
        processes.let_go()
    finally:
        processes.end()


def send_wrong_hello(number, file):
    """One that is of another release, too short, without a table, or none at all."""
    with connection_to(0) as connection:
        hello = [b"SWHELLO0".ljust(64, b"\0"), b"SWHELLO1", b"SWHELLO1".ljust(64, b"\0"), b""][number % 4]
        if number % 4 == 2:
            connection.send(hello)
        elif hello:
            socket.send_fds(connection, [hello], [file])


def flood(size, rounds):
    reached, reaching = os.pipe()
    pid = os.fork()
    if pid == 0:
        file, number = memory("table", bytes(TABLE_BYTES)), 0
        try:
            # Until it is killed, or the leaf has ended.
            while True:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    send_wrong_hello(number, file)
                number += 1
                if number == WRONG_HELLOS:
                    os.write(reaching, b"!")
        finally:
            os._exit(0)
    try:
        os.close(reaching)
        if not os.read(reached, 1):
            raise SystemExit("the leaf has ended")
        offer_all(size)
        wait_for_round(rounds, f"0-{size - 1}")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def connect_silently():
    OPEN.extend(connection_to(0) for _ in range(SILENT))


def silent(size, rounds):
    processes = Processes()
    try:
        processes.start(connect_silently)
        offer_all(size)
        wait_for_round(rounds, f"0-{size - 1}")
    finally:
        processes.end()


def take_steps(size):
    files = [offer(rank, size, RUNNING, 0) for rank in range(size)]
    print("all ranks have counted", flush=True)
    for steps, _ in enumerate(sys.stdin, start=1):
        for rank, file in enumerate(files):
            os.pwrite(file, table(rank, size, RUNNING, steps), 0)
        print("a step", flush=True)


def end_late(*_):
    """Ends what waits for ever, with its processes."""
    raise SystemExit(f"not done within {SECONDS_MAX} s")


def main(ranks, mode="", rounds=""):
    signal.signal(signal.SIGALRM, end_late)
    signal.alarm(SECONDS_MAX)
    size = int(ranks)
    if mode == "alone":
        # Found by its name, among what this process has open.
        memory("sapwood-profile", table(0, size, FINALIZED))
        print("rank 0 has counted", flush=True)
        sys.stdin.read()
        return 0
    if mode == "steps":
        take_steps(size)
        return 3
    if mode == "finalized":
        offer_all(size)
        print("all ranks have counted", flush=True)
        sys.stdin.read()
        return 3
    if mode == "fail":
        fail(size, rounds)
    elif mode == "flood":
        flood(size, rounds)
    elif mode == "silent":
        silent(size, rounds)
    else:
        offer_all(size)
    print("all ranks have counted")
    return 3


sys.exit(main(*sys.argv[1:]))

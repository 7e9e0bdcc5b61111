"""Finds the processes of one run of a test, wherever they are, by a mark in their environment.

A launcher's ranks may leave its group and its session; what they inherit stays with them.
"""

import contextlib
import os
import select
import signal
import time
import uuid

MARK = "SAPWOOD_TEST_MARK"
GONE_SECONDS_MAX = 30
HANGS_SECONDS = 20
# How the names of processes begin that are no ranks.
LAUNCHERS = ("mpirun", "mpiexec")
DAEMONS = ("sapwood", "orted", "hydra")


class LeftBehind(AssertionError):
    """Processes of a run that did not end with it."""


def new_mark():
    """A mark that no other run has."""
    return uuid.uuid4().hex


def marked(mark):
    """Processes whose environment has the mark, as pid and command. Of one that has ended nothing is left to read."""
    wanted = f"{MARK}={mark}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().decode(errors="replace").split("\0")
            if wanted in environment and command != [""]:
                yield int(pid), command


def states(mark):
    """What each process of a run does, one line for each."""
    lines = []
    for pid, command in marked(mark):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]
            with open(f"/proc/{pid}/wchan", encoding="utf-8") as file:
                waits = file.read() or "?"
            lines.append(f"{pid} {state} in {waits}: {' '.join(command)[:120]}")
    return "\n".join(lines)


def is_of_rank(command):
    """Whether a process of a run with this command is one of its program's, and of no launcher or tree."""
    return not os.path.basename(command[0]).startswith((*LAUNCHERS, *DAEMONS))


def kill(pids):
    """Kills processes, of which one may end by the end of another."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_and_wait(pids, seconds_max=GONE_SECONDS_MAX):
    """Kills processes and waits until each has ended. Of one that is ending its memory, and with it its mark, is gone
    before its files are closed and its locks given back."""
    deadline = time.monotonic() + seconds_max
    with contextlib.ExitStack() as opened:
        ends = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                ends.append(os.pidfd_open(pid))
                opened.callback(os.close, ends[-1])
                signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
        for end in ends:
            if not select.select([end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise LeftBehind(f"a process that was killed has not ended within {seconds_max} s")


def end_a_launcher_that_hangs(process, mark, seconds_max):
    """Waits for the process of a run to end. Open MPI's mpirun hangs at times when MPI has ended its program (it waits
    for a futex, after all ranks have gone): it is killed when all ranks have been gone for HANGS_SECONDS."""
    deadline, alone_since, had_ranks = time.monotonic() + seconds_max, None, False
    while process.poll() is None and time.monotonic() < deadline:
        commands = dict(marked(mark))
        launchers = [pid for pid, command in commands.items() if os.path.basename(command[0]).startswith(LAUNCHERS)]
        has_ranks = any(map(is_of_rank, commands.values()))
        # One that has not started any yet takes as long as the machine needs.
        had_ranks |= has_ranks
        now = time.monotonic()
        alone_since = None if has_ranks or not had_ranks or not launchers else alone_since or now
        if alone_since is not None and now - alone_since > HANGS_SECONDS:
            kill(launchers)
        time.sleep(0.1)


def end_what_is_left(mark, seconds_max=GONE_SECONDS_MAX):
    """Waits for the processes of a run to be gone; ends and gives those that are not."""
    deadline = time.monotonic() + seconds_max
    while (left := list(marked(mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    kill(pid for pid, _ in left)
    return left

"""A folder in which the commands of a page run, and what they leave running."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

# Seconds for what was told to end.
END_LIMIT = 60
# What is read again and again until it is as it should be.
LOOKS_AGAIN = 0.05
# As in testbed/surroundings.py; there are more ranks than processors, which Open MPI must be told.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1"}


@dataclass
class Run:
    """How a command went: `status` is none where it still runs."""

    printed: list
    status: int | None = None
    fault: str | None = None


class Command:
    """A command that runs in a process group of its own, and all that it has printed so far."""

    def __init__(self, text, folder, environment):
        self.words = text
        # Its input stays open until it is closed: a member of a group leaves at its end.
        self.process = subprocess.Popen(["bash", "-o", "pipefail", "-c", text], cwd=folder, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        self.changed = threading.Condition()
        self.parts = [b"", b""]
        self.open = 2
        for index, stream in enumerate((self.process.stdout, self.process.stderr)):
            threading.Thread(target=self.read, args=(index, stream), daemon=True).start()

    def read(self, index, stream):
        with stream:
            while part := os.read(stream.fileno(), 65536):
                with self.changed:
                    self.parts[index] += part
                    self.changed.notify_all()
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def text(self):
        """Standard output, then standard error."""
        return "\n".join(part.decode(errors="replace").rstrip("\n") for part in self.parts)

    def wait_for(self, pattern, deadline):
        """Waits until it has printed this, or has printed all; says whether it has printed it."""
        def is_there():
            return re.search(pattern, self.text(), re.M) is not None

        with self.changed:
            self.changed.wait_for(lambda: is_there() or not self.open, max(0, deadline - time.monotonic()))
            return is_there()

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait(self, deadline):
        """Its exit code when it has ended and has printed all; none if it has not by then."""
        with self.changed:
            self.changed.wait_for(lambda: not self.open, max(0, deadline - time.monotonic()))
        try:
            status = self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        # As a shell has it.
        return status if status >= 0 else 128 - status

    def close(self):
        """Ends its input; the threads that read close its output when that ends."""
        self.process.stdin.close()


class PageFolder:
    """The folder of a page, the environment of its commands, and those that run on."""

    def __init__(self, folder, program, libraries, limit):
        self.limit = limit
        self.work = folder / "work"
        self.marked = f"XDG_RUNTIME_DIR={folder}/run".encode()
        for name in ("work", "run", "home"):
            (folder / name).mkdir(mode=0o700)
        path = f"{program.parent}:{os.environ.get('PATH', os.defpath)}"
        self.environment = {
            "PATH": path, "HOME": f"{folder}/home", "XDG_RUNTIME_DIR": f"{folder}/run", "LC_ALL": "C.UTF-8",
            "SAPWOOD_LAUNCHER": "local", "SAPWOOD_GROUPS": f"{self.work}/groups.conf",
            "SAPWOOD_LIB_DIR": str(libraries), **MPI,
        }
        self.staying = []

    def run(self, text, until=None, when=None, stays=False):
        """Runs a command to its end. Once it has printed `until`, or the command `when` succeeds, it is interrupted, or
        with `stays` goes on."""
        command = Command(text, self.work, self.environment)
        deadline = time.monotonic() + self.limit
        self.staying.append(command)
        is_awaited = until is not None or when is not None
        if not stays and not is_awaited:
            command.process.stdin.close()
        if until is not None and not command.wait_for(until, deadline):
            return Run(command.text().splitlines(), fault=f"it has not printed '{until}'")
        while when is not None and not self.succeeds(when, deadline):
            if time.monotonic() > deadline:
                return Run(command.text().splitlines(), fault=f"'{when}' has not succeeded")
            time.sleep(LOOKS_AGAIN)
        if stays:
            return Run(command.text().splitlines())
        if is_awaited:
            command.signal(signal.SIGINT)
        status = command.wait(deadline)
        printed = command.text().splitlines()
        if status is None:
            return Run(printed, fault=f"it has not ended after {self.limit} s")
        self.staying.remove(command)
        command.close()
        return Run(printed, status=status)

    def succeeds(self, text, deadline):
        command = Command(text, self.work, self.environment)
        status = command.wait(deadline)
        if status is None:
            command.signal(signal.SIGKILL)
            command.wait(time.monotonic() + END_LIMIT)
        command.close()
        return status == 0

    def interrupt(self, kept=0):
        """Ends the commands that stay, but for the first of them; gives those that Ctrl-C has not ended."""
        faults = []
        while len(self.staying) > kept:
            command = self.staying.pop()
            command.signal(signal.SIGINT)
            if command.wait(time.monotonic() + END_LIMIT) is None:
                faults.append(f"'{command.words}' has not ended at Ctrl-C")
                command.signal(signal.SIGKILL)
                command.wait(time.monotonic() + END_LIMIT)
            command.close()
        return faults

    def end(self):
        """Ends all that a page has begun; gives what did not end, which is killed."""
        faults = self.interrupt()
        down = Command("sapwood down --all", self.work, self.environment)
        if down.wait(time.monotonic() + self.limit) is None:
            faults.append("'sapwood down --all' has not ended")
            down.signal(signal.SIGKILL)
            down.wait(time.monotonic() + END_LIMIT)
        down.close()
        deadline = time.monotonic() + END_LIMIT
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(LOOKS_AGAIN)
        for process, name in left:
            faults.append(f"process {process} is left running: {name}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return faults

    def left(self):
        """The processes that have the environment of this page, with their commands."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.marked in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found.append((int(entry.name), b" ".join(words).decode(errors="replace").strip()))
            except OSError:
                # It has ended, or is another user's.
                continue
        return found

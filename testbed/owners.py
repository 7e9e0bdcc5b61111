"""The process that a test bed belongs to: when it has ended, its hosts are left behind."""

import dataclasses
import os

FILE = "owner"


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process, and when it was started: numbers of processes are used again."""

    process: int
    started: str

    def is_there(self):
        """Whether this very process has not ended."""
        return start_of(self.process) == self.started


def start_of(process):
    """When a process was started, as the kernel and this boot count; None if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            # The name, in parentheses, may hold spaces.
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return None
    has_ended = fields[0] in "ZX"
    return None if has_ended else f"{fields[19]}@{boot}"


def record(folder, process):
    """Writes down whose test bed this is; the process has to be there."""
    started = start_of(process)
    if started is None:
        raise LookupError(f"there is no process {process}, which would own the test bed")
    with open(os.path.join(folder, FILE), "w", encoding="ascii") as file:
        file.write(f"{process} {started}\n")


def has(folder, process):
    """Whether the test bed with this folder is this process's."""
    owner = recorded(folder)
    # A number that is used again is another process's.
    return owner is not None and owner == Owner(process, start_of(process))


def recorded(folder):
    """The owner of the test bed with this folder; None if it has none."""
    try:
        with open(os.path.join(folder, FILE), encoding="ascii") as file:
            process, started = file.read().split()
        return Owner(int(process), started)
    except (FileNotFoundError, ValueError):
        return None

"""Processors of a host's own: a share of this machine's that others neither take nor lend.

Hosts on one machine share its processors, so that whatever a tree does side by side takes as long as one after
another, and no figure of a start shows what hosts with processors of their own would. A limit on each, small enough
that all limits together are there, makes them independent: hosts with a tenth of a processor are such hosts, ten times
as slow. The limit is the kernel's (CFS bandwidth control, by control groups of either version); the log-in node
has the same.
"""

import glob
import os
import time

import network

LOGIN = "login"
# The kernel knows no shorter allowance. A host that has used its own waits for the period's end.
ALLOWANCE_MIN_MICROSECONDS = 1000
PERIOD_MICROSECONDS = 10_000


def controller():
    """The folder of the groups that limit processors, and whether they are those of version 2."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "/sys/fs/cgroup", True
    for folder in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"):
        if os.path.isdir(folder):
            return folder, False
    raise OSError("the kernel's control groups for processors are not mounted in /sys/fs/cgroup")


def write(*path, text):
    """Writes one setting of a group."""
    with open(os.path.join(*path), "w", encoding="ascii") as file:
        file.write(text)


def allowance(share):
    """How many microseconds a host may compute, of how many: of all its processors together."""
    period = max(PERIOD_MICROSECONDS, round(ALLOWANCE_MIN_MICROSECONDS / share))
    return round(share * period), period


def check(count, share):
    """Checks that `count` hosts and the log-in node can have that share each."""
    there = len(os.sched_getaffinity(0))
    wanted = (count + 1) * share
    if not 0 < wanted <= there:
        raise LookupError(
            f"{count} hosts and the log-in node with {share:g} processors each are {wanted:g}, and there are {there}"
        )


def limit(hosts, share):
    """Makes a group for each host and one for the log-in node."""
    root, is_unified = controller()
    if is_unified:
        write(root, "cgroup.subtree_control", text="+cpu")
    quota, period = allowance(share)
    for host in [*hosts, LOGIN]:
        group = os.path.join(root, network.PREFIX + host)
        os.mkdir(group)
        if is_unified:
            write(group, "cpu.max", text=f"{quota} {period}")
        else:
            write(group, "cpu.cfs_period_us", text=str(period))
            write(group, "cpu.cfs_quota_us", text=str(quota))


def group_of(host):
    """Where a process writes that it belongs to a host, or to the log-in node; none if nothing is limited."""
    try:
        path = os.path.join(controller()[0], network.PREFIX + host, "cgroup.procs")
    except OSError:
        return None
    return path if os.path.exists(path) else None


def enter(host):
    """Makes this process one of a host, if hosts are limited. What it starts, belongs there too."""
    path = group_of(host)
    if path:
        write(path, text="0")


def remove():
    """Removes all groups."""
    try:
        groups = glob.glob(os.path.join(controller()[0], network.PREFIX + "*"))
    except OSError:
        return
    until = time.monotonic() + network.END_DEADLINE_SECONDS
    for group in groups:
        while not is_removed(group):
            if time.monotonic() > until:
                raise TimeoutError(f"the control group {group} does not go away")
            time.sleep(0.01)


def is_removed(group):
    """Removes a group, unless a process that has just ended holds it a little longer."""
    try:
        os.rmdir(group)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True

#!/usr/bin/env python3
"""No process of a tree enters the kernel to read a clock, in the program as it is released.

The statically linked program has to find the kernel's function in user space by itself; where it
does not, each read of the clock is a system call, two or three for each packet. Counts those calls
of every process of a small tree with strace while it makes round trips.

    labs/bench/clock_calls.py BENCH NODE        sapwood-bench, and the sapwood-node that it is to start
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROUNDS = 2000
# Starting and ending may read clocks of the processor time, which are system calls always.
ALLOWED = 50
CLOCKS = "clock_gettime,gettimeofday,time"


def traced(bench, node, out):
    """Runs the tree under strace, which writes to `out`."""
    command = ["strace", "-f", "-qq", "-e", f"trace=execve,{CLOCKS}", "-o", str(out)]
    command += [bench, "tree", "--topology", "2x2", "--only", "round_trip"]
    command += ["--rounds", str(ROUNDS), "--runs", "1", "--encryption", "off"]
    environment = {**os.environ, "SAPWOOD_NODE": node}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def counted(lines):
    """The program of each process, and its calls."""
    programs, calls = {}, collections.Counter()
    for line in lines:
        process, call = line.split(maxsplit=1)
        started = re.match(r'execve\("(?:[^"]*/)?([^/"]+)"', call)
        if started:
            programs[process] = started.group(1)
        elif re.match(rf"({CLOCKS.replace(',', '|')})\(", call):
            calls[process] += 1
    return programs, calls


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bench, node = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "calls"
        ran = traced(bench, node, out)
        if "ptrace" in ran.stderr and "not permitted" in ran.stderr:
            print("not counted: this machine permits no tracing of processes")
            return
        if ran.returncode != 0:
            sys.exit(f"clock_calls: the benchmark failed: {ran.stderr.strip()}")
        programs, calls = counted(out.read_text().splitlines())
    nodes = sum(program == "sapwood-node" for program in programs.values())
    if nodes < 2:
        sys.exit(f"clock_calls: {nodes} communication processes were traced, not 2 or more")
    over = [f"{programs.get(process, '?')}: {n}" for process, n in calls.items() if n > ALLOWED]
    if over:
        sys.exit(f"clock_calls: system calls for clocks in {ROUNDS} round trips: {', '.join(over)}")
    most = max(calls.values(), default=0)
    print(f"{len(programs)} processes, {ROUNDS} round trips, at most {most} system calls for a clock")


if __name__ == "__main__":
    main()

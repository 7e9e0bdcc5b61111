"""What the shim costs per wrapped call, in nanoseconds and in instructions.

    cost.py [--json] [--out FOLDER] [--pairs N] [--calls N]

Beside each cost its ratio to the floor: two readings of the time-stamp counter, in the same run.

Nanoseconds: the same program alternately without and with the shim, one process
each, on one core if `taskset` is there; the difference of each pair, then median
and quartiles over the pairs. Instructions: callgrind totals of two runs that
differ only in the number of calls, so that start-up falls out.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "testbed")]
sys.dont_write_bytecode = True

import surroundings

CALLS = ("MPI_Comm_rank", "MPI_Allreduce")
# The floor: the shim reads the clock before a call and after it.
FLOOR = "two clock reads"
FEW, MANY = 1000, 11000
RUN_SECONDS_MAX = 300


def environment(shim, folder, more):
    told = {"LD_PRELOAD": shim, "SAPWOOD_MPI_DUMP_DIR": folder} if shim else {}
    return os.environ | told | more


def pinned(command):
    return ["taskset", "-c", "0", *command] if shutil.which("taskset") else command


def run(command, shim, folder, **more):
    done = subprocess.run(pinned(command), env=environment(shim, folder, more), capture_output=True, text=True,
                          timeout=RUN_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done


def ns_per_call(program, shim, folder, calls):
    """The quickest batch of one process, per function: the others were disturbed."""
    lines = [line.split() for line in run([program, str(calls), "5", "floor"], shim, folder).stdout.splitlines()]
    return [min(float(line[i]) for line in lines) for i in range(len(CALLS) + 1)]


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 2), "quartile_low": round(low, 2), "quartile_high": round(high, 2),
            "min": round(min(values), 2), "max": round(max(values), 2)}


def time_cost(program, shim, folder, pairs, calls):
    bare, with_shim = [], []
    for pair in range(pairs):
        order = [(None, bare), (shim, with_shim)]
        for preloaded, results in order if pair % 2 == 0 else reversed(order):
            results.append(ns_per_call(program, preloaded, folder, calls))
    report = {}
    for i, name in enumerate(CALLS):
        report[name] = {
            "bare_ns": spread([result[i] for result in bare]),
            "shim_ns": spread([result[i] for result in with_shim]),
            "cost_ns": spread([after[i] - before[i] for before, after in zip(bare, with_shim)]),
            "cost_to_floor": spread([(after[i] - before[i]) / before[-1] for before, after in zip(bare, with_shim)]),
        }
    report[FLOOR] = {"bare_ns": spread([result[-1] for result in bare])}
    return report


def machine():
    """The processor by its name, as far as the system tells it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def clock():
    """What the shim takes for its clock here; see shim/clock.h."""
    wanted = os.environ.get("SAPWOOD_MPI_CLOCK")
    if wanted in ("cycles", "monotonic"):
        return f"{wanted}, by SAPWOOD_MPI_CLOCK"
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        # How the kernel calls a counter of constant rate that never stops.
        if any(line.startswith("flags") and " nonstop_tsc " in line for line in file):
            return "cycles"
    return "monotonic: the processor does not say that its counter has a constant rate"


def instructions(program, shim, folder, calls):
    """Instructions of a whole run. CALLS both happen in it, equally often.

    Valgrind's processor does not say that its time-stamp counter is invariant.
    """
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind", program, str(calls), "1"]
    return int(re.search(r"Collected : (\d+)", run(command, shim, folder, SAPWOOD_MPI_CLOCK="cycles").stderr).group(1))


def instruction_cost(program, shim, folder):
    """Per call, averaged over the two functions."""
    per_call = {}
    for name, preloaded in (("bare", None), ("shim", shim)):
        few, many = (instructions(program, preloaded, folder, calls) for calls in (FEW, MANY))
        per_call[name] = (many - few) / (MANY - FEW) / len(CALLS)
    return {"bare": round(per_call["bare"], 1), "shim": round(per_call["shim"], 1),
            "cost": round(per_call["shim"] - per_call["bare"], 1)}


def measure(out, abi, arguments):
    program, shim = f"{out}/tests/{abi}/call_cost", f"{out}/libsapwood-mpi-{abi}.so"
    if not os.path.exists(program) or not os.path.exists(shim):
        return None
    with tempfile.TemporaryDirectory(prefix="sapwood-mpi-cost-") as folder:
        report = {"time": time_cost(program, shim, folder, arguments.pairs, arguments.calls)}
        if shutil.which("valgrind"):
            report["instructions"] = instruction_cost(program, shim, folder)
        return report


def print_report(abi, report):
    print(f"{abi} on {machine()}, clock {clock()}: nanoseconds per call, median (quartiles; min .. max)")
    for name, parts in report["time"].items():
        for part, s in parts.items():
            print(f"  {name:15} {part:13} {s['median']:8.2f} ({s['quartile_low']:.2f} .. {s['quartile_high']:.2f}; "
                  f"{s['min']:.2f} .. {s['max']:.2f})")
    counted = report.get("instructions")
    if counted:
        print(f"  instructions per call, mean of both: bare {counted['bare']}, with shim {counted['shim']}, "
              f"cost {counted['cost']}")
    else:
        print("  missing: valgrind: no instruction count")


def main():
    parser = argparse.ArgumentParser(description="what the shim costs per wrapped call")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", help="a folder that make has filled; a temporary one is built otherwise")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000000)
    arguments = parser.parse_args()
    surroundings.keep_only("SAPWOOD_MPI_CLOCK", **surroundings.MPI)
    with tempfile.TemporaryDirectory(prefix="sapwood-mpi-cost-") as built:
        out = os.path.abspath(arguments.out or built)
        if not arguments.out:
            done = subprocess.run(["make", "-C", os.path.join(HERE, ".."), f"OUT={out}"], capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
        reports = {abi: measure(out, abi, arguments) for abi in ("openmpi", "mpich")}
    reports = {abi: report for abi, report in reports.items() if report}
    if not reports:
        raise SystemExit("neither Open MPI nor MPICH is here: nothing to measure")
    if arguments.json:
        json.dump(reports, sys.stdout, indent=2)
        print()
        return
    for abi, report in reports.items():
        print_report(abi, report)


if __name__ == "__main__":
    main()

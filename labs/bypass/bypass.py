"""MPI_Reduce of Open MPI with and without the bypass, in turns, under skew.

    bypass.py --library LIBSAPWOOD-BYPASS-OPENMPI.SO [--json FILE] [--np 2,4,8,16,32]
              [--doubles 4,32,128,8192,131072] [--skew-us 0,250,1000] [--dilated]
              [--iterations N] [--turns N] [--bytes-max N]

The baseline yields when idle, which Open MPI does by itself with more ranks than cores. A row
is the median over turns of (with / without); `spread` is the range of the ratio of time
blocked over the turns. A dilated row multiplies the skew by 16, the ranks per core of 32
ranks on 2, and is a different experiment from one without. docs/bypass.md says what is
measured; docs/schema/bench-bypass-1.json is the format of --json.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_SECONDS_MAX = 300
COLUMNS = ("blocked", "latency", "cpu")


def numbers(text):
    return [int(part) for part in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--json")
    parser.add_argument("--np", type=numbers, default=[2, 4, 8, 16, 32])
    parser.add_argument("--doubles", type=numbers, default=[4, 32, 128, 8192, 131072])
    parser.add_argument("--skew-us", type=numbers, default=[0, 250, 1000])
    parser.add_argument("--dilated", action="store_true", help="also the largest skew times 16")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--bytes-max", type=int, help="SAPWOOD_BYPASS_BYTES_MAX, to look beyond the threshold")
    return parser.parse_args()


def run(program, ranks, doubles, skew_us, dilation, iterations, environment):
    command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), program, str(doubles),
               str(skew_us), str(dilation), str(iterations)]
    told = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1", **environment}
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def row(program, ranks, doubles, skew_us, dilation, options):
    """Turns of without and with; the order changes from turn to turn."""
    preload = {"LD_PRELOAD": os.path.abspath(options.library)}
    if options.bytes_max is not None:
        preload["SAPWOOD_BYPASS_BYTES_MAX"] = str(options.bytes_max)
    # Measured at any number of ranks, also where the default leaves it to MPI.
    preload["SAPWOOD_BYPASS_RANKS_MIN"] = "2"
    turns = []
    for turn in range(options.turns):
        sides = [("without", {}), ("with", preload)]
        measured = {name: run(program, ranks, doubles, skew_us, dilation, options.iterations, environment)
                    for name, environment in (sides if turn % 2 == 0 else reversed(sides))}
        turns.append(measured)
    ratios = {name: [turn["with"][f"{name}_us"] / max(turn["without"][f"{name}_us"], 1e-3) for turn in turns]
              for name in COLUMNS}
    middle = {side: {name: statistics.median(turn[side][f"{name}_us"] for turn in turns) for name in COLUMNS}
              for side in ("without", "with")}
    return {"np": ranks, "doubles": doubles, "skew_us": skew_us, "dilation": dilation, "mpi": "Open MPI, yields",
            **{f"{name}_ratio": round(statistics.median(ratios[name]), 4) for name in COLUMNS},
            "spread": [round(min(ratios["blocked"]), 4), round(max(ratios["blocked"]), 4)],
            "latency_spread": [round(min(ratios["latency"]), 4), round(max(ratios["latency"]), 4)],
            "us": middle, "late_starts": max(turn[side]["late"] for turn in turns for side in turn), "turns": turns}


def main():
    options = arguments()
    rows = []
    with tempfile.TemporaryDirectory(prefix="sapwood-bench-bypass-") as folder:
        program = os.path.join(folder, "skewed")
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, os.path.join(HERE, "skewed.c")], check=True)
        cells = [(skew_us, 1) for skew_us in options.skew_us]
        if options.dilated:
            cells.append((max(options.skew_us), 16))
        for ranks in options.np:
            for doubles in options.doubles:
                for skew_us, dilation in cells:
                    rows.append(row(program, ranks, doubles, skew_us, dilation, options))
                    us = rows[-1]["us"]
                    print(f"np {ranks:2} doubles {doubles:6} skew {skew_us:5} us x {dilation:2}: " + ", ".join(
                        f"{name} {us['without'][name]:.1f} -> {us['with'][name]:.1f} us ({rows[-1][name + '_ratio']:.3f})"
                        for name in COLUMNS), flush=True)
    if options.json:
        whole = {"schema": "sapwood.bench-bypass/1", "when": datetime.datetime.now(datetime.timezone.utc).isoformat(),
                 "processors": os.cpu_count(), "load": os.getloadavg()[0], "iterations": options.iterations,
                 "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Round trips through this layer beside those of the C library that it lies on, in alternation.

One line of JSON: the median of each, and their ratio by pairs. On a machine that others use only the ratio
is worth anything.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import harness

PAIRS = int(os.environ.get("PAIRS", "5"))
ROUNDS = os.environ.get("ROUNDS", "2000")


def median(program, topology, back_end, node):
    command = [harness.program(program), topology, harness.program(back_end), ROUNDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=harness.RUN_SECONDS,
                          env={**os.environ, "SAPWOOD_NODE": node})
    return json.loads(done.stdout.splitlines()[-1])["median_us"]


def main():
    spec = sys.argv[1] if len(sys.argv) > 1 else "b:4x4"
    node = str(harness.OUT / "bin/mrnet_commnode")
    with tempfile.TemporaryDirectory() as folder:
        topology = harness.topology(pathlib.Path(folder), spec)
        pairs = [(median("round_trip", topology, "back_end", node),
                  median("bare_round_trip", topology, "bare_back_end", node)) for _ in range(PAIRS)]
    ratios = [layer / bare for layer, bare in pairs]
    print(json.dumps({
        "topology": spec,
        "mrnet_us": statistics.median(layer for layer, _ in pairs),
        "sapwood_us": statistics.median(bare for _, bare in pairs),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }))


if __name__ == "__main__":
    main()

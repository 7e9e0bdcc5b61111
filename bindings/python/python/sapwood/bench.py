"""`python -m sapwood.bench`: round trips asked from Python beside the same asked from Rust.

Both ask one stream of one network, whose back-ends are Sapwood's own and in Rust, block by block in
turns, so that what the machine does besides meets both. Each answer is compared with the right one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import numpy

from . import _native
from .programs import installed_program

TAG = 100
BACK_END = "trial-back-end"
BLOCK = 50
"""Round trips of one kind before the other's turn."""
WAVES_PERIOD = 1 << 20
TIMEOUT = 60.0


def expected(leaves: int, wave: int) -> float:
    """The first number of the sum over all back-ends."""
    return leaves * (leaves + 1) / 2 + leaves * (wave % WAVES_PERIOD)


def python_block(
    stream: _native.Stream, elements: int, first: int, rounds: int
) -> list[tuple[float, float]]:
    """Seconds and first number of each round trip, as a tool in Python asks."""
    taken = []
    request = numpy.array([elements, 0, 1, 0, 0, 0, 0], dtype=numpy.uint64)
    now = time.perf_counter
    for wave in range(first, first + rounds):
        request[1] = wave
        begin = now()
        sums = stream.ask(request, tag=TAG, timeout=TIMEOUT).value
        first_sum = sums[0]
        taken.append((now() - begin, float(first_sum)))
    return taken


def measure(topology: str, rounds: int, elements: int, transport: str) -> dict[str, object]:
    """The figures, by name."""
    times: dict[str, list[float]] = {"python": [], "rust": []}
    ratios = []
    back_end = [installed_program("sapwood-node"), BACK_END]
    with _native.Network(topology, back_end, transport=transport) as network:  # type: ignore[arg-type]
        leaves = len(network.everyone)
        stream = network.stream(up="sum")
        wave = 0
        for block in range(-(-rounds // BLOCK) + 1):
            medians = {}
            for kind in ("python", "rust") if block % 2 else ("rust", "python"):
                if kind == "python":
                    taken = python_block(stream, elements, wave, BLOCK)
                else:
                    taken = _native.round_trips(stream, TAG, elements, wave, BLOCK)
                for at, (_, found) in enumerate(taken):
                    if found != expected(leaves, wave + at):
                        raise SystemExit(f"wave {wave + at}: {found} is no sum; use no figure of this run")
                wave += BLOCK
                medians[kind] = statistics.median(seconds for seconds, _ in taken)
                # The first block warms up.
                if block:
                    times[kind] += [seconds for seconds, _ in taken]
            if block:
                ratios.append(medians["python"] / medians["rust"])
    figures: dict[str, object] = {
        "subject": "bindings",
        "topology": topology,
        "transport": transport,
        "elements": elements,
        "rounds": len(times["rust"]),
    }
    for kind, seconds in times.items():
        cuts = statistics.quantiles(seconds, n=100)
        figures[f"{kind}_microseconds"] = {
            "median": round(statistics.median(seconds) * 1e6, 2),
            "p90": round(cuts[89] * 1e6, 2),
            "p99": round(cuts[98] * 1e6, 2),
        }
    figures["ratio"] = round(statistics.median(ratios), 3)
    return figures


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m sapwood.bench", description=__doc__)
    parser.add_argument("--topology", default="2x2")
    parser.add_argument("--rounds", type=int, default=2000, help="round trips of each kind")
    parser.add_argument("--elements", type=int, default=8, help="float64 numbers in a wave")
    kinds = ["automatic", "unix", "tcp", "shm"]
    parser.add_argument("--transport", default="automatic", choices=kinds)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    figures = measure(chosen.topology, chosen.rounds, chosen.elements, chosen.transport)
    if chosen.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:22} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

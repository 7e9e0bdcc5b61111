"""`python -m sapwood.turns`: measures in turns, for `sapwood bench`.

A line on standard input has a number; a line on standard output has the mean nanoseconds of one of that many
round trips, or of one of that many calls of a filter. It ends with the input.

    python -m sapwood.turns round-trips TOPOLOGY [BACK-END...]
    python -m sapwood.turns filter CHILDREN ELEMENTS
    python -m sapwood.turns back-end
"""

from __future__ import annotations

import sys
import time

import numpy

from . import _native

TAG = 130
"""The benchmark's own back-ends send such a packet back."""
NUMBERS = 1 << 20
TIMEOUT = 60.0


def round_trips(topology: str, back_end: list[str]) -> None:
    """A number down, the sum of all back-ends up."""
    now = time.perf_counter_ns
    number = 0
    with _native.Network(topology, back_end) as network:
        leaves = len(network.everyone)
        stream = network.stream(up="sum")
        for line in sys.stdin:
            taken = []
            for _ in range(int(line)):
                begin = now()
                total = stream.ask(number, tag=TAG, format="%d", timeout=TIMEOUT).value
                taken.append(now() - begin)
                if total != leaves * number:
                    raise SystemExit(f"{number}: {total} is no sum of {leaves} back-ends")
                number = (number + 1) % NUMBERS
            print(*taken, flush=True)


def back_end() -> None:
    """Sends every packet back."""
    with _native.BackEnd.from_environment() as leaf:
        for request in leaf:
            leaf.reply(request, request.value, format="%d")


def add(wave: _native.Wave) -> object:
    """The filter that is measured: the sum of the children's arrays."""
    first, *others = wave.values
    return sum(others, start=first)


def filter_calls(children: int, elements: int) -> None:
    """Calls of `add`, as a communication process makes them."""
    whole = numpy.arange(elements).sum() * children + elements * sum(range(children))
    for line in sys.stdin:
        calls = int(line)
        seconds, total = _native.filter_calls("python:sapwood.turns:add", children, elements, calls)
        if total != whole:
            raise SystemExit(f"{total} is no sum, which is {whole}")
        print(round(seconds * 1e9 / calls), flush=True)


def main(words: list[str]) -> int:
    """Measures what is asked for."""
    match words:
        case ["round-trips", topology]:
            round_trips(topology, [sys.executable, "-m", "sapwood.turns", "back-end"])
        case ["round-trips", topology, *program]:
            round_trips(topology, program)
        case ["filter", children, elements]:
            filter_calls(int(children), int(elements))
        case ["back-end"]:
            back_end()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Draws docs/pictures/offload.svg, and prints the table of docs/monitor.md, from the runs in offload.ndjson.

    offload.py            writes offload.svg beside this file
    offload.py --check    exit code 1 if offload.svg is not what the runs give
    offload.py --table    prints the table

A line of offload.ndjson is one run of `sapwood bench monitor --only offload --json`. A point is the median over the
runs, a bar reaches from the smallest to the largest of them.
"""

import json
import pathlib
import statistics
import sys

import chart

HERE = pathlib.Path(__file__).resolve().parent
RUNS, PICTURE = HERE / "offload.ndjson", HERE / "offload.svg"
FRAME = chart.Frame(420, 460)
# Points of different lines at one number of ranks are drawn beside each other, to keep their bars apart, and the first
# and the last of them inside of the frame.
BESIDE = 8
INSIDE = 16
MODES = {"unreduced": "dashed", "reduced": "solid"}
LOOKS = chart.LOOKS[:4]


class Points:
    """What all runs have in common: for each tree and number of events the times of every run."""

    def __init__(self, runs):
        self.rows = {}
        for run in runs:
            for row in run["offload"]:
                self.rows.setdefault((row["events"], row["fan_out"], row["ranks"]), []).append(row)
        if not self.rows or any(len(rows) != len(runs) for rows in self.rows.values()):
            raise ValueError(f"{RUNS.name}: the runs have no points, or not the same ones")
        self.events, self.fan_outs, self.ranks = (sorted({key[at] for key in self.rows}) for at in range(3))
        if len(self.fan_outs) > len(LOOKS):
            raise ValueError(f"{RUNS.name}: more than {len(LOOKS)} fan-outs")

    def times(self, events, fan_out, ranks, mode):
        """In milliseconds, one of each run, the smallest first."""
        return sorted(row[f"{mode}_us"] / 1e3 for row in self.rows[events, fan_out, ranks])

    def all_times(self):
        return [row[f"{mode}_us"] / 1e3 for rows in self.rows.values() for row in rows for mode in MODES]


def curve(points, events, fan_out, mode, x, y):
    """One line, with a mark and a bar for each number of ranks."""
    at = points.fan_outs.index(fan_out)
    look, shift = LOOKS[at], (at - (len(points.fan_outs) - 1) / 2) * BESIDE
    places, marks = [], []
    for ranks in points.ranks:
        times = points.times(events, fan_out, ranks, mode)
        across, middle = x.place(ranks) + shift, y.place(statistics.median(times))
        places.append(f"{across:.1f},{middle:.1f}")
        marks.append(f'<line class="bar {look}" x1="{across:.1f}" y1="{y.place(times[0]):.1f}" x2="{across:.1f}" '
                     f'y2="{y.place(times[-1]):.1f}"/>')
        fill = "full" if mode == "reduced" else "hollow"
        marks.append(f'<circle class="{look} {fill}" cx="{across:.1f}" cy="{middle:.1f}" r="3.5"/>')
    yield f'<polyline class="line {look} {MODES[mode]}" points="{" ".join(places)}"/>'
    yield from marks


def legend(points):
    """The names of the lines, one row for each mode."""
    for row, mode in enumerate(MODES):
        across, down = FRAME.left, FRAME.low + 62 + 22 * row
        yield f'<text x="{across}" y="{down + 4}">{mode}, fan-out</text>'
        for at, fan_out in enumerate(points.fan_outs):
            begin = across + 122 + 54 * at
            fill = "full" if mode == "reduced" else "hollow"
            yield (f'<line class="line {LOOKS[at]} {MODES[mode]}" x1="{begin}" y1="{down}" x2="{begin + 30}" '
                   f'y2="{down}"/>')
            yield f'<circle class="{LOOKS[at]} {fill}" cx="{begin + 15}" cy="{down}" r="3.5"/>'
            yield f'<text x="{begin + 36}" y="{down + 4}">{fan_out}</text>'


def picture(points):
    """The SVG: a panel for each number of events."""
    x = chart.Powers(points.ranks, 2, FRAME.left + INSIDE, FRAME.end - INSIDE)
    y = chart.Powers(points.all_times(), 2, FRAME.low, FRAME.top)
    parts = []
    for at, events in enumerate(points.events):
        parts.append(f'<g transform="translate({FRAME.width * at} 0)">')
        parts += chart.headings(FRAME, f"{events} events on each rank", "time of one iteration")
        parts += chart.grid(FRAME, x, y, "ranks", y_text="{:g} ms".format)
        for mode in MODES:
            for fan_out in points.fan_outs:
                parts += curve(points, events, fan_out, mode, x, y)
        parts += [*legend(points), "</g>"]
    title = "One offload of all ranks, reduced in the tree and unreduced"
    return chart.svg(FRAME.width * len(points.events), FRAME.height, title, len(LOOKS), parts)


def spread(values, digits):
    """Median and range."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def table(points):
    """The rows of the page; ratios are those of the runs, their range that of all pairs in them."""
    yield "| events | fan-out | ranks | unreduced, ms | reduced, ms | reduced over unreduced | dump, us |"
    yield "|---|---|---|---|---|---|---|"
    for (events, fan_out, ranks), rows in sorted(points.rows.items()):
        times = [spread(points.times(events, fan_out, ranks, mode), 1) for mode in MODES]
        low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
        ratio = f"{statistics.median(row['ratio'] for row in rows):.2f} ({low:.2f}-{high:.2f})"
        dump = spread([row["dump_us"] for row in rows], 0)
        yield f"| {events} | {fan_out} | {ranks} | {times[0]} | {times[1]} | {ratio} | {dump} |"


def main():
    """Draws, compares or prints."""
    points = Points([json.loads(line) for line in RUNS.read_text("utf-8").splitlines()])
    return chart.serve(__doc__.splitlines()[0], {PICTURE: picture(points)}, table(points))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Draws docs/pictures/offload.svg, and prints the table of docs/monitor.md, from the runs in offload.ndjson.

    offload.py            writes offload.svg beside this file
    offload.py --check    exit code 1 if offload.svg is not what the runs give
    offload.py --table    prints the table

A line of offload.ndjson is one run of `sapwood bench monitor --only offload --json`. A point is the median over the
runs, a bar reaches from the smallest to the largest of them.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
RUNS, PICTURE = HERE / "offload.ndjson", HERE / "offload.svg"
PANEL_WIDTH, HEIGHT = 420, 460
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 56, 112
# Points of different lines at one number of ranks are drawn beside each other, to keep their bars apart, and the first
# and the last of them inside of the frame.
BESIDE = 8
INSIDE = 16
MODES = {"unreduced": "dashed", "reduced": "solid"}
STYLE = """svg { background: #ffffff; }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #1c1f23; }
.title { font-size: 15px; font-weight: 600; }
.faint { fill: #5b6470; }
.ground { fill: #ffffff; }
.grid { stroke: #d8dde3; stroke-width: 1; }
.line { fill: none; stroke-width: 2; }
.bar { stroke-width: 1; }
.dashed { stroke-dasharray: 5 4; }
.hollow { fill: #ffffff; }
.a { stroke: #d55e00; } .a.full { fill: #d55e00; }
.b { stroke: #0072b2; } .b.full { fill: #0072b2; }
.c { stroke: #007a58; } .c.full { fill: #007a58; }
.d { stroke: #a3497c; } .d.full { fill: #a3497c; }
@media (prefers-color-scheme: dark) {
  svg { background: #15181c; }
  text { fill: #e6e9ed; }
  .faint { fill: #9aa4b0; }
  .ground, .hollow { fill: #15181c; }
  .grid { stroke: #353c45; }
  .a { stroke: #e69f00; } .a.full { fill: #e69f00; }
  .b { stroke: #56b4e9; } .b.full { fill: #56b4e9; }
  .c { stroke: #2fc79a; } .c.full { fill: #2fc79a; }
  .d { stroke: #e58fbd; } .d.full { fill: #e58fbd; }
}"""
LOOKS = "abcd"


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


class Axis:
    """A logarithmic axis from a power of its base to another."""

    def __init__(self, values, base, begin, end):
        self.base, self.begin, self.end = base, begin, end
        self.first = math.floor(math.log(min(values), base) + 1e-9)
        self.last = max(math.ceil(math.log(max(values), base) - 1e-9), self.first + 1)

    def place(self, value):
        share = (math.log(value, self.base) - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [self.base**power for power in range(self.first, self.last + 1)]


def grid(x, y):
    """The lines behind a panel, with their numbers."""
    bottom, right = HEIGHT - BOTTOM, PANEL_WIDTH - RIGHT
    for ranks in x.ticks():
        at = x.place(ranks)
        yield f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{bottom}"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{ranks:g}</text>'
    for time in y.ticks():
        at = y.place(time)
        yield f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{time:g} ms</text>'
    yield f'<text class="faint" x="{(LEFT + right) / 2}" y="{bottom + 35}" text-anchor="middle">ranks</text>'


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
        across, down = LEFT, HEIGHT - BOTTOM + 62 + 22 * row
        yield f'<text x="{across}" y="{down + 4}">{mode}, fan-out</text>'
        for at, fan_out in enumerate(points.fan_outs):
            begin = across + 130 + 62 * at
            fill = "full" if mode == "reduced" else "hollow"
            yield (f'<line class="line {LOOKS[at]} {MODES[mode]}" x1="{begin}" y1="{down}" x2="{begin + 30}" '
                   f'y2="{down}"/>')
            yield f'<circle class="{LOOKS[at]} {fill}" cx="{begin + 15}" cy="{down}" r="3.5"/>'
            yield f'<text x="{begin + 36}" y="{down + 4}">{fan_out}</text>'


def picture(points):
    """The SVG: a panel for each number of events."""
    width = PANEL_WIDTH * len(points.events)
    x = Axis(points.ranks, 2, LEFT + INSIDE, PANEL_WIDTH - RIGHT - INSIDE)
    y = Axis(points.all_times(), 2, HEIGHT - BOTTOM, TOP)
    title = "One offload of all ranks, reduced in the tree and unreduced"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
             f'height="{HEIGHT}" role="img" aria-label="{title}"><title>{title}</title>',
             f"<style>{STYLE}\n</style>", f'<rect class="ground" width="{width}" height="{HEIGHT}"/>']
    for at, events in enumerate(points.events):
        parts.append(f'<g transform="translate({PANEL_WIDTH * at} 0)">')
        parts.append(f'<text class="title" x="{LEFT}" y="24">{events} events on each rank</text>')
        parts.append(f'<text class="faint" x="{LEFT}" y="42">time of one iteration</text>')
        parts += grid(x, y)
        for mode in MODES:
            for fan_out in points.fan_outs:
                parts += curve(points, events, fan_out, mode, x, y)
        parts += [*legend(points), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the picture with the runs")
    parser.add_argument("--table", action="store_true", help="print the table")
    arguments = parser.parse_args()
    points = Points([json.loads(line) for line in RUNS.read_text("utf-8").splitlines()])
    if arguments.table:
        print("\n".join(table(points)))
    elif arguments.check:
        if not PICTURE.exists() or PICTURE.read_text("utf-8") != picture(points):
            print(f"{PICTURE.name} is not what {RUNS.name} gives: run {pathlib.Path(__file__).name}", file=sys.stderr)
            return 1
    else:
        PICTURE.write_text(picture(points), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

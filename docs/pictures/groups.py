#!/usr/bin/env python3
"""Draws groups-6.svg to groups-9.svg of docs/groups-design.md, from the simulated runs in groups.ndjson.

    groups.py            writes the pictures beside this file, those of which there are runs
    groups.py --check    exit code 1 if the pictures are not what the runs give
    groups.py --table    prints the table

A line of groups.ndjson is one of `sapwood sim group --figures members,lengths,sums,churn`, or all that
`sapwood sim group` prints without `--figures`, which has the sums of `adaptive` beside those of `static`. A point is
the median over the seeds; rates over time are those of the first seed.
"""

import json
import pathlib
import statistics
import sys

import chart

HERE = pathlib.Path(__file__).resolve().parent
RUNS = HERE / "groups.ndjson"
FRAME = chart.Frame(720, 480)
# A tree has the same line in all pictures. Those of the paper are dashed.
TREES = ["adaptive", "static", "list", "paper-latency", "paper-bandwidth", "binomial", "flat"]
DASHED = ("paper-latency", "paper-bandwidth")
LEGEND_COLUMNS = 4
# Lengths begin and end inside of the frame: their names are long.
INSIDE = 16
STATIC, LIST = "static", "list"
# As in labs/sim/src/group.rs.
SUM_MEMBERS_MAX = 128


class Runs:
    """The lines of the file, by figure and tree."""

    def __init__(self, lines):
        self.lines = {}
        for line in lines:
            # What is printed without `--figures` has no name of a figure.
            figure, tree = line.get("figure", "ratios"), line.get("tree", TREES[0])
            self.lines.setdefault((figure, tree), []).append(line)
        if not self.lines:
            raise ValueError(f"{RUNS.name} has no runs")

    def of(self, figure):
        """The trees of a figure, with their lines."""
        return {tree: self.lines[figure, tree] for tree in TREES if (figure, tree) in self.lines}

    def about(self, figure):
        """Of which network the figure is."""
        line = next(iter(self.of(figure).values()))[0]
        # What is printed without `--figures` counts the members of the other measurements.
        members = min(line["members"], SUM_MEMBERS_MAX) if figure == "ratios" else line["members"]
        return f"{members} members of {line['scenario']}"


def medians(lists):
    """Of pairs of an argument and a value: for each argument the median, null as never, while all lists have it."""
    values = {}
    for pairs in lists:
        for argument, value in pairs:
            values.setdefault(argument, []).append(float("inf") if value is None else value)
    found = [(key, statistics.median(each)) for key, each in sorted(values.items()) if len(each) == len(lists)]
    return [(key, value) for key, value in found if value != float("inf")]


def by_member(runs):
    """Figure 6: when the n-th member has the byte."""
    return {tree: medians([list(enumerate(line["by_member_ms"], 1)) for line in lines])
            for tree, lines in runs.of("members").items()}


def by_length(runs, figure, name):
    """For each tree a value by length."""
    return {tree: medians([[(row["bytes"], row[name]) for row in line[figure]] for line in lines])
            for tree, lines in runs.of(figure).items()}


def beside(curves, tree):
    """The curves divided by that of one tree."""
    base = dict(curves.get(tree, []))
    return {name: [(key, value / base[key]) for key, value in points if key in base]
            for name, points in curves.items()}


def sums(runs):
    """Figure 8: times of sums beside those of `static`."""
    curves = by_length(runs, "sums", "ms")
    if curves:
        return beside(curves, STATIC)
    return {tree: medians([[(row["bytes"], row["ratio_to_static"]) for row in line["reduce"]] for line in lines])
            for tree, lines in runs.of("ratios").items()}


def size(value):
    """A length as people write it."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g} B"


class Lengths(chart.Powers):
    """A logarithmic axis of lengths, with a line at every `step` powers of 2."""

    def __init__(self, values, step):
        super().__init__(values, 2, FRAME.left + INSIDE, FRAME.end - INSIDE)
        self.step = step

    def ticks(self):
        return super().ticks()[::self.step]


class Pixels:
    """An axis whose values are pixels."""

    @staticmethod
    def place(value):
        """The value itself."""
        return value


def line(tree, points, x, y):
    """One curve."""
    look = f"line {chart.LOOKS[TREES.index(tree)]}" + (" dashed" if tree in DASHED else "")
    places = " ".join(f"{x.place(across):.1f},{y.place(up):.1f}" for across, up in points)
    return f'<polyline class="{look}" points="{places}"/>'


def marks(tree, points, x, y):
    """A point for each value."""
    look = f"{chart.LOOKS[TREES.index(tree)]} {'hollow' if tree in DASHED else 'full'}"
    for across, up in points:
        yield f'<circle class="{look}" cx="{x.place(across):.1f}" cy="{y.place(up):.1f}" r="3"/>'


def legend(trees):
    """The names of the curves, below the axes."""
    for at, tree in enumerate(trees):
        row, column = divmod(at, LEGEND_COLUMNS)
        across, down = FRAME.left + 160 * column, FRAME.low + 62 + 22 * row
        yield line(tree, [(across, down), (across + 30, down)], Pixels, Pixels)
        yield f'<text x="{across + 36}" y="{down + 4}">{tree}</text>'


class Sheet:
    """One picture under way."""

    def __init__(self, title, subtitle, x, y, name, **texts):
        self.title, self.x, self.y = title, x, y
        self.parts = [*chart.headings(FRAME, title, subtitle), *chart.grid(FRAME, x, y, name, **texts)]

    def mark(self, value, name):
        """A line upwards, with a name at its top."""
        at = self.x.place(value)
        self.parts.append(f'<line class="bar g" x1="{at:.1f}" y1="{FRAME.top}" x2="{at:.1f}" y2="{FRAME.low}"/>')
        self.parts.append(f'<text class="faint" x="{at + 5:.1f}" y="{FRAME.top + 14}">{name}</text>')

    def draw(self, curves, has_marks):
        """The SVG with these curves, the first of them uppermost."""
        for tree in reversed(curves):
            self.parts.append(line(tree, curves[tree], self.x, self.y))
            if has_marks:
                self.parts += marks(tree, curves[tree], self.x, self.y)
        return chart.svg(FRAME.width, FRAME.height, self.title, len(TREES), [*self.parts, *legend(curves)])


def arguments_of(curves):
    """All of them, of all curves."""
    return [key for points in curves.values() for key, _ in points]


def values_of(curves):
    """All of them, of all curves."""
    return [value for points in curves.values() for _, value in points]


def upwards(curves):
    """An axis from 0 on."""
    return chart.Numbers(max(values_of(curves)), FRAME.low, FRAME.top)


def rightwards(curves):
    """An axis from 0 on."""
    return chart.Numbers(max(arguments_of(curves)), FRAME.left, FRAME.end)


def members_picture(runs):
    """Figure 6."""
    curves = by_member(runs)
    subtitle = f"time until the n-th member has it, ms; {runs.about('members')}"
    sheet = Sheet("A broadcast of one byte", subtitle, rightwards(curves), upwards(curves), "members that have it")
    return sheet.draw(curves, has_marks=False)


def lengths_picture(runs):
    """Figure 7."""
    curves = by_length(runs, "lengths", "mb_per_s")
    x = Lengths(arguments_of(curves), 1)
    subtitle = f"length over the time until the last member has it, MB/s; {runs.about('lengths')}"
    sheet = Sheet("Broadcasts by length", subtitle, x, upwards(curves), "length", x_text=size)
    return sheet.draw(curves, has_marks=True)


def sums_picture(runs):
    """Figure 8."""
    curves = sums(runs)
    x, y = Lengths(arguments_of(curves), 2), chart.Powers([1, *values_of(curves)], 2, FRAME.low, FRAME.top)
    subtitle = f"time beside that of static; {runs.about('sums' if runs.of('sums') else 'ratios')}"
    sheet = Sheet("Sums by length", subtitle, x, y, "length", x_text=size)
    return sheet.draw(curves, has_marks=True)


def churn_picture(runs):
    """Figure 9."""
    first = {tree: lines[0] for tree, lines in runs.of("churn").items() if lines[0]["over_time"]}
    curves = {tree: [(row[end], row["mb_per_s"]) for row in line["over_time"] for end in ("begin_s", "end_s")]
              for tree, line in first.items()}
    one = next(iter(first.values()))
    subtitle = f"rate of each broadcast of {size(one['bytes'])}, MB/s; {runs.about('churn')}"
    sheet = Sheet("Half of the members leave and return", subtitle, rightwards(curves), upwards(curves), "seconds")
    sheet.mark(one["moments"]["leave_s"], "leave")
    sheet.mark(one["moments"]["come_s"], "return")
    return sheet.draw(curves, has_marks=False)


def pictures(runs):
    """The SVG of each figure of which there are runs, by file."""
    known = {6: ("members", members_picture), 7: ("lengths", lengths_picture), 8: ("sums", sums_picture),
             9: ("churn", churn_picture)}
    if not runs.of("sums"):
        known[8] = ("ratios", sums_picture)
    return {HERE / f"groups-{number}.svg": draw(runs) for number, (figure, draw) in known.items() if runs.of(figure)}


def least_and_most(points):
    """Of the values of a curve."""
    values = [value for _, value in points]
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""


def table(runs):
    """A row for each tree: the last member of figure 6, the ends of figure 7, the range of figure 8."""
    times, rates, ratios = by_member(runs), by_length(runs, "lengths", "mb_per_s"), sums(runs)
    columns = [{tree: f"{points[-1][1]:.2f}" for tree, points in times.items()}]
    columns.append({tree: f"{points[-1][1]:.2f}" for tree, points in beside(times, STATIC).items() if points})
    columns.append({tree: f"{points[-1][1]:.1f}" for tree, points in rates.items() if points})
    columns.append({tree: f"{points[-1][1]:.2f}" for tree, points in beside(rates, LIST).items() if points})
    columns.append({tree: least_and_most(points) for tree, points in ratios.items()})
    yield "| tree | 1 byte, ms | / static | longest, MB/s | / list | sums / static |"
    yield "|---|---|---|---|---|---|"
    for tree in TREES:
        cells = [column.get(tree, "") for column in columns]
        if any(cells):
            yield f"| `{tree}` | {' | '.join(cells)} |"


def main():
    """Draws, compares or prints."""
    runs = Runs([json.loads(line) for line in RUNS.read_text("utf-8").splitlines()])
    return chart.serve(__doc__.splitlines()[0], pictures(runs), table(runs))


if __name__ == "__main__":
    sys.exit(main())

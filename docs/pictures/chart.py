"""What the pictures of docs/pictures have in common: colours, axes and their grid, the SVG, and what a script does."""

import argparse
import math
import sys

# Light and dark, of lines that lie beside each other in one picture.
COLOURS = [("#d55e00", "#e69f00"), ("#0072b2", "#56b4e9"), ("#007a58", "#2fc79a"), ("#a3497c", "#e58fbd"),
           ("#7a6200", "#d9c84a"), ("#6a4fb3", "#b39ddb"), ("#5b6470", "#9aa4b0")]
LOOKS = "abcdefg"
LIGHT = """svg { background: #ffffff; }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #1c1f23; }
.title { font-size: 15px; font-weight: 600; }
.faint { fill: #5b6470; }
.ground { fill: #ffffff; }
.grid { stroke: #d8dde3; stroke-width: 1; }
.line { fill: none; stroke-width: 2; }
.bar { stroke-width: 1; }
.dashed { stroke-dasharray: 5 4; }
.hollow { fill: #ffffff; }
"""
DARK = """  svg { background: #15181c; }
  text { fill: #e6e9ed; }
  .faint { fill: #9aa4b0; }
  .ground, .hollow { fill: #15181c; }
  .grid { stroke: #353c45; }
"""


def style(lines):
    """The style sheet of a picture of some lines."""
    light, dark = [], []
    for look, (by_day, by_night) in zip(LOOKS[:lines], COLOURS):
        light.append(f".{look} {{ stroke: {by_day}; }} .{look}.full {{ fill: {by_day}; }}\n")
        dark.append(f"  .{look} {{ stroke: {by_night}; }} .{look}.full {{ fill: {by_night}; }}\n")
    return f'{LIGHT}{"".join(light)}@media (prefers-color-scheme: dark) {{\n{DARK}{"".join(dark)}}}'


class Frame:
    """The room of a panel, and of its axes in it, in pixels."""

    left, right, top, bottom = 62, 18, 56, 112

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.low, self.end = height - self.bottom, width - self.right


class Powers:
    """A logarithmic axis from a power of its base to another."""

    def __init__(self, values, base, begin, end):
        self.base, self.begin, self.end = base, begin, end
        self.first = math.floor(math.log(min(values), base) + 1e-9)
        self.last = max(math.ceil(math.log(max(values), base) - 1e-9), self.first + 1)

    def place(self, value):
        """Where a value lies, in pixels."""
        share = (math.log(value, self.base) - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        """The values that have a line."""
        return [self.base**power for power in range(self.first, self.last + 1)]


class Numbers:
    """An axis from 0 to a value, in about six steps."""

    def __init__(self, most, begin, end):
        self.begin, self.end = begin, end
        rough = most / 6
        unit = 10 ** math.floor(math.log10(rough))
        self.step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        self.most = math.ceil(most / self.step - 1e-9) * self.step

    def place(self, value):
        """Where a value lies, in pixels."""
        return self.begin + value / self.most * (self.end - self.begin)

    def ticks(self):
        """The values that have a line."""
        return [self.step * at for at in range(round(self.most / self.step) + 1)]


def grid(frame, x, y, name, x_text="{:g}".format, y_text="{:g}".format):
    """The lines behind a panel, with their numbers."""
    for value in x.ticks():
        at = x.place(value)
        yield f'<line class="grid" x1="{at:.1f}" y1="{frame.top}" x2="{at:.1f}" y2="{frame.low}"/>'
        yield f'<text x="{at:.1f}" y="{frame.low + 17}" text-anchor="middle">{x_text(value)}</text>'
    for value in y.ticks():
        at = y.place(value)
        yield f'<line class="grid" x1="{frame.left}" y1="{at:.1f}" x2="{frame.end}" y2="{at:.1f}"/>'
        yield f'<text x="{frame.left - 7}" y="{at + 4:.1f}" text-anchor="end">{y_text(value)}</text>'
    middle = (frame.left + frame.end) / 2
    yield f'<text class="faint" x="{middle}" y="{frame.low + 35}" text-anchor="middle">{name}</text>'


def headings(frame, title, subtitle):
    """What stands above a panel."""
    yield f'<text class="title" x="{frame.left}" y="24">{title}</text>'
    yield f'<text class="faint" x="{frame.left}" y="42">{subtitle}</text>'


def svg(width, height, title, lines, parts):
    """The picture with these parts."""
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{title}"><title>{title}</title>',
            f"<style>{style(lines)}\n</style>", f'<rect class="ground" width="{width}" height="{height}"/>']
    return "\n".join([*head, *parts, "</svg>", ""])


def serve(description, pictures, rows):
    """Writes the pictures, a text for each file; or compares them with the files; or prints the rows of the table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare the pictures with what the runs give")
    parser.add_argument("--table", action="store_true", help="print the table")
    arguments = parser.parse_args()
    if arguments.table:
        print("\n".join(rows))
        return 0
    wrong = 0
    for path, text in pictures.items():
        if not arguments.check:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"{path.name} is not what the runs give: call this without --check", file=sys.stderr)
            wrong = 1
    return wrong

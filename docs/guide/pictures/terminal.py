#!/usr/bin/env python3
"""What a command shows on a terminal at one moment, as an SVG picture.

    terminal.py --out FILE --after SECONDS [--columns N] [--rows N] -- COMMAND [ARGUMENT...]

The command runs on a pseudo-terminal. After these seconds the screen is drawn, the command is interrupted, and
waited for. Needs pyte from PyPI. Not part of any build: the pictures are committed.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from xml.sax.saxutils import escape

import pyte

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 12
BACKGROUND, TEXT = "#10151c", "#d5dbe3"
COLOURS = {"red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff", "magenta": "#d2a8ff",
           "cyan": "#76e3ea", "white": "#d5dbe3", "black": "#6e7681"}
# What a command has after it was interrupted.
END_SECONDS_MAX = 20


def shown(command, columns, rows, seconds):
    """The screen after these seconds."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                stream.feed(os.read(terminal, 1 << 16))
            except OSError:
                break
    lines = [[screen.buffer[row][column] for column in range(columns)] for row in range(rows)]
    end(process, terminal)
    return lines


def end(process, terminal):
    """Interrupts the command and waits for it; what it writes meanwhile is read, and not shown."""
    os.kill(process, signal.SIGINT)
    until = time.monotonic() + END_SECONDS_MAX
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                os.read(terminal, 1 << 16)
            except OSError:
                pass


def runs(line):
    """Neighbouring cells of one look: where they begin, the first of them, their text."""
    found = []
    for column, cell in enumerate(line):
        look = (cell.fg, cell.bold, cell.reverse)
        if found and found[-1][3] == look:
            found[-1][2] += cell.data
        else:
            found.append([column, cell, cell.data, look])
    return [(column, cell, text if cell.reverse else text.rstrip()) for column, cell, text, _ in found]


def colour(cell):
    name = cell.fg.removeprefix("bright")
    return COLOURS.get(name, "#" + name if len(name) == 6 and name != "brown" else TEXT)


def picture(lines):
    """The SVG; empty lines at both ends are left out."""
    is_empty = ["".join(cell.data for cell in line).isspace() for line in lines]
    lines = lines[is_empty.index(False):len(lines) - is_empty[::-1].index(False)]
    width = max(len("".join(cell.data for cell in line).rstrip()) for line in lines) * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
             f'height="{height}" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="14">',
             f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>']
    for row, line in enumerate(lines):
        for column, cell, text in runs(line):
            if not text:
                continue
            x, y = MARGIN + column * CELL_WIDTH, MARGIN + (row + 0.75) * CELL_HEIGHT
            length, fill = len(text) * CELL_WIDTH, colour(cell)
            if cell.reverse:
                parts.append(f'<rect x="{x:.1f}" y="{MARGIN + row * CELL_HEIGHT}" width="{length:.1f}" '
                             f'height="{CELL_HEIGHT}" fill="{fill}"/>')
                fill = BACKGROUND
            weight = ' font-weight="bold"' if cell.bold else ""
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs" '
                         f'fill="{fill}"{weight} xml:space="preserve">{escape(text)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    """Runs the command and draws what it has shown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--after", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    lines = shown(arguments.command, arguments.columns, arguments.rows, arguments.after)
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write(picture(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

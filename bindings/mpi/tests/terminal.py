"""A program on a terminal of its own, and what its screen shows."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import watched
from marks import MARK, LeftBehind, end_what_is_left, new_mark

# What moves the cursor, clears, scrolls and colours; the rest is letters.
CONTROL = re.compile(r"\x1b(?:\[([?>]?)([\d;]*)([A-Za-z])|([78=>]))")
# One of these whose end has not come yet.
BEGUN = re.compile(r"\x1b(?:\[[?>]?[\d;]*)?")


class Screen:
    """The cells of a terminal, as far as the view uses one."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [self.blank() for _ in range(rows)]
        self.y = self.x = 0
        self.region = (0, rows - 1)
        self.saved = (0, 0)
        self.rest = ""

    def blank(self):
        return [" "] * self.columns

    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            found = CONTROL.match(text, at)
            if found is None:
                # The end of it has not come; what can have no such end is not known here.
                if not BEGUN.fullmatch(text, at):
                    raise ValueError(f"unknown escape: {text[at:at + 16]!r}")
                self.rest = text[at:]
                return
            at = found.end()
            if found[4] is None:
                self.obey(found[1], [int(number or 0) for number in found[2].split(";")], found[3])
            elif found[4] == "7":
                self.saved = (self.y, self.x)
            elif found[4] == "8":
                self.y, self.x = self.saved

    def put(self, letter):
        if letter == "\r":
            self.x = 0
        elif letter == "\n" and self.y == self.region[1]:
            self.cells.insert(self.region[1] + 1, self.blank())
            del self.cells[self.region[0]]
        elif letter == "\n":
            self.y = min(self.y + 1, self.rows - 1)
        elif letter >= " " and self.x < self.columns:
            self.cells[self.y][self.x] = letter
            self.x += 1

    def obey(self, private, numbers, letter):
        first = numbers[0]
        if private:
            return
        if letter == "H":
            self.y = min(max(first, 1), self.rows) - 1
            self.x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif letter == "A":
            self.y = max(0, self.y - max(1, first))
        elif letter == "r":
            last = numbers[1] if len(numbers) > 1 else 0
            self.region = (max(first, 1) - 1, (last or self.rows) - 1)
            self.y = self.x = 0
        elif letter == "J":
            below = self.y + 1 if first == 0 else 0
            self.cells[below:] = [self.blank() for _ in self.cells[below:]]
            if first == 0:
                self.cells[self.y][self.x:] = " " * (self.columns - self.x)
        elif letter == "K":
            begin = self.x if first == 0 else 0
            self.cells[self.y][begin:] = " " * (self.columns - begin)


class OnTerminal:
    """A run of a command on a terminal, within a `with`: `screen` is what it shows."""

    def __init__(self, command, rows=30, columns=120, environment=None):
        self.command, self.size = command, (rows, columns)
        self.screen = Screen(rows, columns)
        self.mark = new_mark()
        self.environment = {**os.environ, MARK: self.mark, "TERM": "xterm", **(environment or {})}
        self.code = None
        self.deadline = time.monotonic() + watched.RUN_SECONDS_MAX

    def __enter__(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *self.size, 0, 0))
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            os.login_tty(theirs)
            # A background job of a shell ignores interrupts.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                os.execve(self.command[0], self.command, self.environment)
            finally:
                # Where that fails the copy of this program must not go on with its tests.
                os._exit(127)
        os.close(theirs)
        self.terminal = ours
        return self

    def __exit__(self, kind, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)
        left = end_what_is_left(self.mark)
        if left and kind is None:
            raise LeftBehind(f"left running by {' '.join(self.command)}: {left}")

    def read(self):
        """Takes what has come; false once the last holder of the terminal has gone."""
        if not select.select([self.terminal], [], [], max(0, self.deadline - time.monotonic()))[0]:
            raise watched.Hang("\n".join(self.screen.lines()))
        with contextlib.suppress(OSError):
            if piece := os.read(self.terminal, 1 << 16):
                self.screen.feed(piece.decode(errors="replace"))
                return True
        return False

    def shown(self, pattern):
        """Waits until a line of the screen matches, and gives the match."""
        while True:
            for line in self.screen.lines():
                if found := re.search(pattern, line):
                    return found
            if not self.read():
                raise watched.Hang(f"ended before '{pattern}' was shown:\n" + "\n".join(self.screen.lines()))

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def wait(self):
        """Reads to the end, and gives the exit code."""
        while self.read():
            pass
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

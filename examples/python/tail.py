"""What do the logs of all hosts say? `tail.py TOPOLOGY FILE [SECONDS]` follows a file on every
back-end and prints each line once, with the ranks that wrote it.

Ten times a second the front-end asks for what is new; equal lines of one turn are folded on their way
up. `{rank}` in FILE stands for the back-end's rank. It follows until it is interrupted, or for SECONDS.
"""

import sys
import time

import sapwood

LINES_MAX = 60  # A packet has at most 64 values, and each line is one; more come in the next turn.


class Followed:
    """A file that others append to, and how far it has been read."""

    def __init__(self, path: str) -> None:
        self.path, self.read = path, 0

    def new_lines(self) -> list[str]:
        """The lines that are complete since the last time; a file that became shorter begins anew."""
        lines: list[str] = []
        try:
            with open(self.path, "rb") as file:
                self.read = self.read if file.seek(0, 2) >= self.read else 0
                file.seek(self.read)
                while len(lines) < LINES_MAX and (line := file.readline()).endswith(b"\n"):
                    self.read += len(line)
                    lines.append(line[:-1].decode(errors="replace"))
        except FileNotFoundError:
            pass
        return lines


def back_end(file: str) -> None:
    """Sends what is new; a line is a stack of one frame, and none an empty stack."""
    with sapwood.BackEnd.from_environment() as leaf:
        followed = Followed(file.replace("{rank}", str(leaf.rank)))
        for request in leaf:
            lines = followed.new_lines()
            stacks = [[line] for line in lines] or [[]]
            leaf.reply(request, *stacks, format=" ".join(["%as"] * len(stacks)))


def front_end(topology: str, file: str, seconds: float) -> None:
    """Asks until the time is up."""
    program = [sys.executable, __file__, "back-end", file]
    with sapwood.Network(topology, program) as network:
        stream, ends = network.stream(up="prefix-tree"), time.monotonic() + seconds
        while time.monotonic() < ends:
            answer = stream.ask("lines", timeout=10)
            for line in sapwood.sketch.PrefixTree(answer).nodes:
                print(f"{line.ranks}: {line.name}", flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["back-end", file]:
            back_end(file)
        case [topology, file]:
            front_end(topology, file, float("inf"))
        case [topology, file, seconds]:
            front_end(topology, file, float(seconds))
        case _:
            sys.exit("tail: usage: tail.py TOPOLOGY FILE [SECONDS]")

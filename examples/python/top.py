"""Which of all hosts have the most? `top.py TOPOLOGY K COMMAND` runs a command on every back-end and
prints the K largest of the numbers with which its lines begin.

The tree finds the numbers and the ranks that have them; only those back-ends are then asked for the lines.
`{rank}` in COMMAND stands for the back-end's rank.
"""

import subprocess
import sys

import numpy as np
import sapwood


def numbered_lines(command: str) -> list[tuple[float, str]]:
    """The lines of a command's output that begin with a number, with it."""
    output = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, check=False)
    lines = []
    for line in output.stdout.splitlines():
        try:
            lines.append((float(line.split()[0]), line.strip()))
        except (IndexError, ValueError):
            continue
    return lines


def back_end(command: str) -> None:
    """Answers with all numbers, or with the line that begins with one."""
    lines: list[tuple[float, str]] = []
    with sapwood.BackEnd.from_environment() as leaf:
        command = command.replace("{rank}", str(leaf.rank))
        for request in leaf:
            if isinstance(request.value, float):
                line = next((line for number, line in lines if number == request.value), "")
                leaf.reply(request, line)
            else:
                lines = numbered_lines(command)
                leaf.reply(request, np.array([number for number, _ in lines], dtype="f8"))


def front_end(topology: str, k: int, command: str) -> None:
    """Asks for the numbers, then for their lines."""
    program = [sys.executable, __file__, "back-end", command]
    with sapwood.Network(topology, program) as network:
        answer = network.stream(up=("top", k)).ask("numbers", timeout=60)
        lines = network.stream(wave="immediate")
        for entry in sapwood.sketch.TopK(answer).entries:
            lines.send(entry.number, to=next(iter(entry.ranks)))
            print(f"{entry.ranks}: {lines.recv(timeout=60).value}")
        for missing in answer.missing:
            print(f"no answer from {missing.ranks}: {missing.reason}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["back-end", command]:
            back_end(command)
        case [topology, k, command]:
            front_end(topology, int(k), command)
        case _:
            sys.exit("top: usage: top.py TOPOLOGY K COMMAND")

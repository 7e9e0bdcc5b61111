"""Where is each process? `stacks.py TOPOLOGY PID...` draws the stacks of many processes as one tree.

Each back-end looks at one process, thread by thread, as the kernel sees it (`/proc/PID/stack`, which
root may read; for others the name of the call in which the thread waits). The tree merges stacks that
begin alike.
"""

import sys
from pathlib import Path

import sapwood


def stack_of(thread: Path) -> list[str]:
    """A thread's frames, the outermost first."""

    def read(name: str) -> str:
        try:
            return (thread / name).read_text()
        except OSError:
            return ""

    # One frame a line, the innermost first: "[<0>] do_epoll_wait+0x60/0x1b0".
    frames = [line.split()[1].split("+")[0] for line in read("stack").splitlines()]
    if not frames:
        waits_in = read("wchan")
        frames = [waits_in if waits_in not in ("", "0") else "(running)"]
    return [read("comm").strip(), *reversed(frames)]


def back_end(pids: list[str]) -> None:
    """Sends the stacks of one process, each as a list of texts."""
    with sapwood.BackEnd.from_environment() as leaf:
        threads = Path("/proc", pids[leaf.rank] if leaf.rank < len(pids) else "none", "task")
        for request in leaf:
            stacks = [stack_of(thread) for thread in threads.glob("*")][:60]
            leaf.reply(request, *(stacks or [["(no such process)"]]))


def front_end(topology: str, pids: list[str]) -> None:
    """Asks once."""
    with sapwood.Network(topology, [sys.executable, __file__, "back-end", *pids]) as network:
        if len(network.everyone) != len(pids):
            sys.exit(
                f"stacks: {len(network.everyone)} back-ends cannot look at {len(pids)} processes"
            )
        answer = network.stream(up="prefix-tree").ask("stacks", timeout=10)
        print(sapwood.sketch.PrefixTree(answer), end="")
        for missing in answer.missing:
            print(f"no answer from {missing.ranks}: {missing.reason}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["back-end", *pids]:
            back_end(pids)
        case [topology, *pids] if pids:
            front_end(topology, pids)
        case _:
            sys.exit("stacks: usage: stacks.py TOPOLOGY PID..., with one PID for each back-end")

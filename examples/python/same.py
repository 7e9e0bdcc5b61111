"""Which hosts differ, and in what? `same.py TOPOLOGY FILE` compares a file of all back-ends.

Each back-end sends a checksum of its file (or why it cannot read it); the tree sorts the back-ends into
classes of equal ones; the front-end fetches the whole file from one representative of each class.
`{rank}` in FILE stands for the back-end's rank.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import sapwood


def back_end(file: str) -> None:
    """Answers with a checksum, or with the file."""
    with sapwood.BackEnd.from_environment() as leaf:
        path = Path(file.replace("{rank}", str(leaf.rank)))
        for request in leaf:
            content, reason = b"", None
            try:
                content = path.read_bytes()
            except OSError as error:
                reason = error.strerror
            if request.value == "content":
                leaf.reply(request, np.frombuffer(content, dtype="u1"))
            else:
                leaf.reply(request, [reason or "=" + hashlib.sha256(content).hexdigest()])


def front_end(topology: str, file: str) -> None:
    """Asks for the checksums, then for one file of each class, the largest class first."""
    program = [sys.executable, __file__, "back-end", file]
    with sapwood.Network(topology, program) as network:
        answer = network.stream(up="prefix-tree").ask("checksum", timeout=10)
        contents = network.stream(wave="immediate")
        for missing in answer.missing:
            print(f"no answer from {missing.ranks}: {missing.reason}")
        classes = sapwood.sketch.PrefixTree(answer).nodes
        classes.sort(key=lambda one: (-len(one.ranks), next(iter(one.ranks))))
        for one in classes:
            who = f"{len(one.ranks)} back-ends ({one.ranks})"
            if not one.name.startswith("="):
                print(f"{who}: {one.name}")
                continue
            contents.send("content", to=next(iter(one.ranks)))
            content = contents.recv(timeout=10).value.tobytes()
            lines = content.count(b"\n")
            print(f"{who}: {len(content)} bytes, {lines} lines")
            if len(classes) > 1:
                print(content.decode(errors="replace"), end="")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["back-end", file]:
            back_end(file)
        case [topology, file]:
            front_end(topology, file)
        case _:
            sys.exit("same: usage: same.py TOPOLOGY FILE")

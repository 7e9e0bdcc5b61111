"""Which ranks are slow? A filter in Python keeps the three largest of all loads, with their ranks.

Its source is shipped to the communication processes, which run Python; loads and ranks are arrays of
NumPy all the way.
"""

import sys

import numpy as np
import sapwood


def top(wave: sapwood.Wave, count: int) -> tuple[object, object]:
    """Of all pairs of load and rank, those of the largest loads."""
    import numpy as np

    loads = np.concatenate([loads for loads, _ in wave.values])
    ranks = np.concatenate([ranks for _, ranks in wave.values])
    order = np.argsort(-loads)[:count]
    return loads[order], ranks[order]


def back_end() -> None:
    """Measures, as it were."""
    with sapwood.BackEnd.from_environment() as leaf:
        for request in leaf:
            load = (leaf.rank * 7919) % 16 / 10
            leaf.reply(request, np.array([load]), np.array([leaf.rank], "u4"))


def front_end() -> None:
    """Asks once."""
    leaf, node = [sys.executable, __file__, "back-end"], [sys.executable, "-m", "sapwood.node"]
    with sapwood.Network("4^2", leaf, node_program=node) as network:
        stream = network.stream(up=sapwood.PythonFilter(top, 3), wave=5.0)
        loads, ranks = stream.ask(timeout=30).value
        for load, rank in zip(loads, ranks, strict=True):
            print(f"rank {rank:2d} has load {load:.1f}")


if __name__ == "__main__":
    back_end() if sys.argv[1:] == ["back-end"] else front_end()

"""`python -m sapwood.node`: a communication process that runs Python filters.

A network starts it if it is named: `Network(..., node_program=[sys.executable, "-m", "sapwood.node"])`.
As the `sapwood-node` that it stands for, it serves until its network ends, and leaves on SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from . import _native, filters
from .errors import SapwoodError


def main(arguments: list[str] | None = None) -> int:
    """Serves; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sapwood.node")
    parser.add_argument("command", nargs="?", choices=["node"], help="what the tree says")
    parser.add_argument("--join", metavar="ATTACH-FILE", help="join the network of this file")
    chosen = parser.parse_args(arguments)
    leave, asked = os.pipe()
    os.set_blocking(asked, False)
    # The interpreter writes to it from its own handler: Python code does not run while the node does.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.set_wakeup_fd(asked)
    # Modules with filters may lie beside the tool, where the tree runs.
    sys.path.insert(0, os.getcwd())
    try:
        _native.serve(leave, chosen.join)
    except SapwoodError as error:
        print(f"sapwood.node: {error}", file=sys.stderr)
        return 125
    finally:
        signal.set_wakeup_fd(-1)
        if not filters.end():
            # Nothing else of this process waits for the filter that has not come back.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

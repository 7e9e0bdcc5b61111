"""The program of paced.c: it works until it is told to end."""

import os
import tempfile

from watched import LAUNCHERS, test_program


class Paced:
    """A program that works within a `with`: `command` starts it."""

    def __init__(self, abi, ranks):
        self.abi, self.ranks = abi, ranks

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sapwood-mpi-paced-")
        self.stop = os.path.join(self.folder.name, "stop")
        self.command = [*LAUNCHERS[self.abi], str(self.ranks), test_program(self.abi, "paced"), self.stop]
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def has_begun(self):
        """Whether all ranks have taken a step."""
        return os.path.exists(f"{self.stop}.begun")

    def wait_for_ranks(self, run):
        run.wait_for("ranks that count", self.has_begun)

    def end(self):
        open(self.stop, "x", encoding="utf-8").close()

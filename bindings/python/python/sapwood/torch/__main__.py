"""`python -m sapwood.torch SCRIPT [ARGUMENTS]`; see the package."""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from . import handover, parallel, script
from .calls import Calls
from .recorder import Recorder

USAGE = """usage: python -m sapwood.torch SCRIPT [ARGUMENTS]
       python -m sapwood.torch -m MODULE [ARGUMENTS]

Runs a PyTorch distributed program as 'python SCRIPT' does and, where 'sapwood trace why' or 'sapwood mpi'
has started it, lets that see the calls of torch.distributed:

    sapwood trace why -- mpirun -np 4 python3 -m sapwood.torch train.py
"""
BAD_USAGE = 2


def say(text: str) -> None:
    """One line on standard error, in one piece."""
    os.write(2, f"sapwood: {text}\n".encode())


class Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and then has it changed."""

    def __init__(self, loader: importlib.abc.Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the module's own loader makes it."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module, and the change before other modules import from it."""
        self._loader.exec_module(module)
        self._change(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds those modules that are to be changed, by the finders that find them without it."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        """The module's own spec with a loader that changes it."""
        if fullname not in self._changes:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader, self._changes[fullname])
                return spec
        return None


class Run:
    """One run of a script under a monitor."""

    def __init__(self, program: str) -> None:
        self._program = os.path.basename(program)
        self._calls = Calls(self._make_recorder)
        self.code = 0

    def begin(self) -> None:
        """Has PyTorch's modules changed when the script imports them."""
        sys.meta_path.insert(0, Finder({
            "torch.distributed.distributed_c10d": self._calls.wrap,
            "torch.nn.parallel.distributed": lambda module: parallel.wrap(module, self._calls),
        }))
        os.register_at_fork(after_in_child=self._calls.leave)
        atexit.register(self._end)

    def note_code(self, code: int) -> None:
        """The script ends with this exit code."""
        self.code = code

    def _make_recorder(self, rank: int, size: int) -> Recorder | None:
        try:
            return Recorder(rank, size, self._program)
        except OSError as error:
            if rank == 0 or "SAPWOOD_VERBOSE" in os.environ:
                say(f"rank {rank}: {error}; the program runs on unobserved")
            return None

    def _end(self) -> None:
        if self._calls.recorder is not None:
            self._calls.recorder.close(self.code)


def main() -> None:
    """Runs the script that the command line names."""
    words = sys.argv[1:]
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return
    if not words or words[0] == "-m" and len(words) == 1 or words[0].startswith("-") and words[0] != "-m":
        wrong = "a script is missing" if not words or words[0] == "-m" else f"there is no option '{words[0]}'"
        say(f"{wrong}; as in: python -m sapwood.torch train.py")
        sys.exit(BAD_USAGE)
    if words[0] != "-m" and not os.path.exists(words[0]):
        say(f"'{words[0]}': no such script")
        sys.exit(BAD_USAGE)
    run = Run(words[1] if words[0] == "-m" else words[0])
    if handover.is_wanted():
        if importlib.util.find_spec("torch") is None:
            say(f"{sys.executable} has no module 'torch'; install PyTorch, or name the Python that has it")
            sys.exit(BAD_USAGE)
        run.begin()
    script.run(words, run.note_code)


if __name__ == "__main__":
    main()

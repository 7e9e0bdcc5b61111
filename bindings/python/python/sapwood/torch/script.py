"""Runs a script as `python SCRIPT` runs it."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package, and without those that have started it."""
    kept: list[TracebackType] = []
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if os.path.dirname(name) == PACKAGE:
            # What has started this package lies before its first frame.
            kept = [one for one in kept if one.tb_frame.f_code.co_filename != "<frozen runpy>"]
        else:
            kept.append(traceback)
        traceback = traceback.tb_next
    following: TracebackType | None = None
    for one in reversed(kept):
        one.tb_next = following
        following = one
    return following


def show_as_alone() -> None:
    """From now on tracebacks are shown without the frames of this package."""
    shown = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        seen: set[int] = set()
        chained: BaseException | None = error
        while chained is not None and id(chained) not in seen:
            seen.add(id(chained))
            chained.__traceback__ = without_ours(chained.__traceback__)
            chained = chained.__cause__ or chained.__context__
        shown(kind, error, error.__traceback__)

    sys.excepthook = excepthook


def code_of(stop: SystemExit) -> int:
    """The exit code that an interpreter ends with."""
    if stop.code is None:
        return 0
    return stop.code & 0xFF if isinstance(stop.code, int) else 1


def run_file(path: str) -> None:
    """Runs a file as `__main__`; a folder or an archive too, as `python` does."""
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
        return
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    with io.open_code(os.path.abspath(path)) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102 - it is the program


def run(words: list[str], told: Callable[[int], None]) -> None:
    """Runs `SCRIPT ARGUMENTS` or `-m MODULE ARGUMENTS`; `told` is given the exit code before it ends.

    What the script raises is raised.
    """
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            sys.path[0] = os.getcwd()
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(words)
            run_file(words[0])
    except SystemExit as stop:
        told(code_of(stop))
        raise
    except BaseException:
        told(1)
        show_as_alone()
        raise

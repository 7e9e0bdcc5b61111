"""Filters that are Python callables: what a stream names, and what a process makes of it.

A stream names a callable in a module that every process can import, `python:module:function`, or has
its source shipped with the request that opens the stream: a `PythonFilter`. Either way it is made once
for each stream at each process of the tree; a class is called with the parameters to make an instance,
a function gets them behind the wave in every call.

A callable gets a `Wave` and returns one value, a tuple of several, or `None` for no packet. One that is
a stream's synchronisation rule gets `Arrivals`, and says whether the wave goes on.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.util
import inspect
import linecache
import os
import textwrap
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _native

SOURCE_BYTES_MAX = 256 << 10
"""The longest source that is shipped."""

_SOURCE = "source"

# How long callables that are given up may take to end, and how often that is looked at.
_END_SECONDS = 1.0
_LOOK_SECONDS = 0.01


class PythonFilter:
    """A callable whose source is shipped to the processes of the tree, with its parameters.

    `PythonFilter(function, *parameters)` takes the source of a function or a class as it stands: it can
    use what it imports itself. `PythonFilter.from_file(path, name)` ships a whole file.
    """

    def __init__(self, callable: Callable[..., object], *parameters: object) -> None:
        name = getattr(callable, "__name__", "")
        if not name.isidentifier():
            raise TypeError("a filter to be shipped is a function or a class with a name")
        text = textwrap.dedent(inspect.getsource(callable))
        self._specify(text, name, parameters)

    @classmethod
    def from_source(cls, source: str, name: str, *parameters: object) -> PythonFilter:
        """A callable of this name, in this text."""
        made = cls.__new__(cls)
        made._specify(source, name, parameters)
        return made

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], name: str, *parameters: object
    ) -> PythonFilter:
        """A callable of this name, in this file."""
        return cls.from_source(Path(path).read_text(encoding="utf-8"), name, *parameters)

    def _specify(self, source: str, name: str, parameters: tuple[object, ...]) -> None:
        size = len(source.encode())
        if size > SOURCE_BYTES_MAX:
            raise ValueError(f"a source of {size} bytes; at most {SOURCE_BYTES_MAX} are shipped")
        compile(source, f"<filter {name}>", "exec")
        self.specification = (f"python:{_SOURCE}", name, source, *parameters)
        self.name = name

    def __repr__(self) -> str:
        return f"PythonFilter('{self.name}')"


def load(place: str, parameters: tuple[Any, ...]) -> Callable[[Any], object]:
    """What a process makes of a name: called by the tree."""
    if place == _SOURCE:
        name, source, *rest = parameters
        return _with(_of_source(name, source), name, rest)
    module_name, separator, name = place.partition(":")
    if not separator or not name:
        raise ValueError(f"filter 'python:{place}': name it as in python:module:function")
    found: Any = importlib.import_module(module_name)
    for part in name.split("."):
        found = getattr(found, part)
    return _with(found, name, list(parameters))


def load_of(
    source: bytes, file: str, name: str, parameters: tuple[Any, ...]
) -> Callable[[Any], object]:
    """The same of a file that was shipped."""
    if not name:
        raise ValueError(f"filters '{file}': name the one that is meant, as in file.filter('name')")
    return _with(_of_source(name, importlib.util.decode_source(source), file), name, list(parameters))


def check(source: bytes, file: str) -> None:
    """Raises SyntaxError for a file that is no program."""
    compile(source, file, "exec")


def _of_source(name: str, source: str, file: str | None = None) -> Any:
    file = file or f"<filter {name}>"
    # So that a traceback can show the line.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType("sapwood_filter")
    exec(compile(source, file, "exec"), module.__dict__)
    return getattr(module, name)


def _with(found: Any, name: str, parameters: list[Any]) -> Callable[[Any], object]:
    if not callable(found):
        raise TypeError(f"filter '{name}' is a {type(found).__name__}, which cannot be called")
    if isinstance(found, type):
        made: Callable[[Any], object] = found(*parameters)
        if not callable(made):
            raise TypeError(f"filter '{name}' has no __call__(self, wave)")
        return made
    if not parameters:
        return found  # type: ignore[no-any-return]
    return functools.wraps(found)(lambda wave: found(wave, *parameters))


class GivenUp(BaseException):
    """Raised in a callable that still runs when its process ends."""


def end() -> bool:
    """Ends callables that have not returned; returns whether none is left.

    The interpreter cannot end in order while one of its threads is in a callable: that would take the
    process along, with a message of its own.
    """
    until = time.monotonic() + _END_SECONDS
    while threads := _native.filters_at_work():
        if time.monotonic() > until:
            return False
        for thread in threads:
            # Raised at the thread's next bytecode; a thread that waits in a system call runs none.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(GivenUp))
        time.sleep(_LOOK_SECONDS)
    return True


atexit.register(end)


def describe(error: BaseException, trace: types.TracebackType | None) -> str:
    """An exception in one line, with its place."""
    words = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")
    places = traceback.extract_tb(trace)
    place = f" ({os.path.basename(places[-1].filename)}:{places[-1].lineno})" if places else ""
    return f"Python filter: {words}{place}"

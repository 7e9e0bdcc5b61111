"""Where the programs of a network are: `sapwood-node`, which came with this package, and the
interpreter that runs communication processes with Python filters."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from .errors import ProgramError

NODE_VARIABLE = "SAPWOOD_NODE"
"""Sets the program of the communication processes, instead of the one that is found."""


def node_program() -> list[str]:
    """The default program of the communication processes."""
    named = os.environ.get(NODE_VARIABLE)
    return [named or installed_program("sapwood-node")]


def python_node() -> list[str]:
    """A program for communication processes that run Python filters."""
    return [sys.executable, "-m", "sapwood.node"]


def binary() -> str:
    """The `sapwood` command: the one that was installed with this package, else on the search path."""
    return installed_program("sapwood")


def installed_program(name: str) -> str:
    """A program that was installed with this package, else the one on the search path."""
    for candidate in _installed(name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which(name)
    if found is None:
        advice = f" or name it in {NODE_VARIABLE}" if name == "sapwood-node" else ""
        raise ProgramError(
            f"the program '{name}' was not found; install this package with it, put it on the "
            f"search path{advice}"
        )
    return found


def _installed(name: str) -> list[Path]:
    candidates = []
    try:
        files = metadata.files("sapwood") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name and file.parent.name == "bin":
            candidates.append(Path(str(file.locate())))
    candidates.append(Path(sysconfig.get_path("scripts")) / name)
    return candidates

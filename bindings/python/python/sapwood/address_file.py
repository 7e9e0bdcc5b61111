"""The file in which a group's first member says where it is, so that no program need read its output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from .errors import GroupError, TimeoutError

__all__ = ["join", "remove", "write"]

Member = TypeVar("Member")

LOOK_SECONDS = 0.05
"""How often it is looked whether the file is there, or has another address."""

BYTES_MAX = 64 << 10
"""More than any address has."""


def write(path: str | PathLike[str], address: str) -> None:
    """Writes an address, which readers see as a whole or not at all."""
    place = Path(path)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        draft.write_text(f"{address}\n")
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def join(path: str | PathLike[str], timeout: float, joined: Callable[[str], Member]) -> Member:
    """What is joined at the address in a file. The file is waited for, and read again while no process listens at
    the address in it: that is an earlier member's."""
    until = time.monotonic() + timeout
    while True:
        address = _read(path)
        if address:
            try:
                return joined(address)
            except GroupError as error:
                if not error.is_unheard or time.monotonic() >= until:
                    raise
        elif time.monotonic() >= until:
            raise TimeoutError(f"no address was written to {os.fspath(path)} within {timeout} s")
        time.sleep(LOOK_SECONDS)


def _read(path: str | PathLike[str]) -> str:
    """The address in a file; nothing if it is not there yet."""
    try:
        with open(path) as file:
            return file.read(BYTES_MAX).strip()
    except FileNotFoundError:
        return ""


def remove(path: str | PathLike[str], address: str) -> None:
    """Removes the file, unless something else was put in its place, such as the address of another member."""
    place = Path(path)
    try:
        if place.read_text().strip() == address:
            place.unlink()
    except (OSError, UnicodeDecodeError):
        # It is not what `write` has left, or may not be removed any more; a member leaves all the same.
        pass

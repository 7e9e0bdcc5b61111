"""The file in which a group's first member says where it is, so that no program need read its output."""

from __future__ import annotations

import os
import time
from os import PathLike
from pathlib import Path

from .errors import TimeoutError

__all__ = ["read", "remove", "write"]

LOOK_SECONDS = 0.05
"""How often it is looked whether the file is there."""

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


def read(path: str | PathLike[str], timeout: float) -> str:
    """The address in a file, which is waited for."""
    until = time.monotonic() + timeout
    while True:
        try:
            with open(path) as file:
                address = file.read(BYTES_MAX).strip()
        except FileNotFoundError:
            address = ""
        if address:
            return address
        if time.monotonic() >= until:
            raise TimeoutError(f"no address was written to {os.fspath(path)} within {timeout} s")
        time.sleep(LOOK_SECONDS)


def remove(path: str | PathLike[str], address: str) -> None:
    """Removes the file, unless something else was put in its place, such as the address of another member."""
    place = Path(path)
    try:
        if place.read_text().strip() == address:
            place.unlink()
    except (OSError, UnicodeDecodeError):
        # It is not what `write` has left, or may not be removed any more; a member leaves all the same.
        pass

"""What can go wrong, as exceptions.

All are a `SapwoodError`. Where Python has a word for it already they are that, too, so that a program
that catches `TimeoutError` or `ValueError` need not know this module.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Missing


class SapwoodError(Exception):
    """Anything that a network, a stream or a back-end says."""


class TopologyError(SapwoodError, ValueError):
    """A topology cannot be read; the message says what and where."""


class MisuseError(SapwoodError, RuntimeError):
    """A call that makes no sense as things stand."""


class ClosedError(MisuseError, ValueError):
    """Something is used after it was closed."""


class ForkedError(MisuseError):
    """Something is used in a process that was forked off the one that made it."""


class ThreadError(MisuseError):
    """Two threads use one network or one back-end at once."""


class FilterError(MisuseError, ValueError):
    """A stream asks for a filter that is unknown here or does not take its parameters."""


class ValuesError(SapwoodError, ValueError):
    """Values cannot be sent or read as they are."""


class DtypeError(ValuesError, TypeError):
    """A value or the elements of an array are of a type that no packet, or not this format, holds."""


class LayoutError(ValuesError, BufferError):
    """The elements of an array do not lie as a packet needs them: one behind another."""


class GroupError(MisuseError):
    """A group does not take this member in, or a call to it is wrong; the message says why."""

    is_unheard: bool = False
    """Whether no process listens at the address at which a group was to be joined."""


class ScopeError(SapwoodError, ValueError):
    """A scope of events makes no sense; the message says which key, and why."""


class StartError(SapwoodError):
    """Processes of the tree did not start. No process is left running."""

    failures: Sequence[tuple[int, str]] = ()
    """Rank and own words of each."""


class TimeoutError(SapwoodError, builtins.TimeoutError):
    """The deadline passed."""


class NoMemberLeftError(SapwoodError):
    """All back-ends of the stream are lost: no answer can arrive."""

    missing: Sequence[Missing] = ()
    """The missing back-ends, with reasons."""


class NoValueError(SapwoodError):
    """An answer has no value: a filter failed, or no back-end contributed."""

    missing: Sequence[Missing] = ()
    """The missing back-ends, with reasons."""


class EndedError(SapwoodError, EOFError):
    """The network has ended for this process."""


class ProgramError(SapwoodError, FileNotFoundError):
    """The program of the communication processes, or that of the back-ends, was not found."""


class FileError(SapwoodError, OSError):
    """A file of the user's could not be used."""


class SystemError(SapwoodError, OSError):
    """The system, a connection or a process failed."""


__all__ = [
    "ClosedError",
    "DtypeError",
    "EndedError",
    "FileError",
    "FilterError",
    "ForkedError",
    "GroupError",
    "LayoutError",
    "MisuseError",
    "NoValueError",
    "NoMemberLeftError",
    "ProgramError",
    "SapwoodError",
    "ScopeError",
    "StartError",
    "SystemError",
    "ThreadError",
    "TimeoutError",
    "TopologyError",
    "ValuesError",
]

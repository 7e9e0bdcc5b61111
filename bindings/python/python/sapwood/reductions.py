"""Operations of reductions, and how numbers of each type go through the tree.

The tree combines bytes, signed integers of 32 and 64 bits, and floats. Other integers are carried by these such that
the result is that of their own type: sums, products and bits of unsigned integers are those of signed ones; for the
smallest and the largest the top bit is inverted, which maps one order to the other; 16 bits are carried in 32.

Functions of the program do not run in the tree: the thread of a member must not wait for the interpreter. Numbers for
them are gathered, and the thread that wants the result calls the function.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .errors import GroupError

__all__ = [
    "BAND",
    "BOR",
    "LAND",
    "LOR",
    "MAX",
    "MIN",
    "PROD",
    "SUM",
    "Apart",
    "Carried",
    "Operation",
    "Operator",
    "carry",
    "keep_apart",
]

Operator = Callable[[Any, Any], Any]


class Operation:
    """A built-in operation: for buffers by the name that the tree has for it, for objects as a function."""

    def __init__(self, label: str, name: str, function: Operator) -> None:
        self.label = label
        self.name = name
        self.function = function

    def __call__(self, one: Any, other: Any) -> Any:
        return self.function(one, other)

    def __repr__(self) -> str:
        return f"sapwood.{self.label}"


SUM = Operation("SUM", "sum", lambda one, other: one + other)
PROD = Operation("PROD", "product", lambda one, other: one * other)
MIN = Operation("MIN", "min", min)
MAX = Operation("MAX", "max", max)
LAND = Operation("LAND", "and", lambda one, other: bool(one) & bool(other))
LOR = Operation("LOR", "or", lambda one, other: bool(one) | bool(other))
BAND = Operation("BAND", "and", lambda one, other: one & other)
BOR = Operation("BOR", "or", lambda one, other: one | other)

_LOGICAL = (LAND, LOR)
_ORDER = (MIN, MAX)
# What MPI allows: bits of integers, and no sums of truth values.
_OPERATIONS = {
    "i": (SUM, PROD, MIN, MAX, LAND, LOR, BAND, BOR),
    "u": (SUM, PROD, MIN, MAX, LAND, LOR, BAND, BOR),
    "f": (SUM, PROD, MIN, MAX),
    "?": (LAND, LOR, BAND, BOR),
}
# The letters of buffers, as in `struct`: the size of an element says the rest.
_KINDS = {
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("cBHILQN", "u"),
    **dict.fromkeys("fd", "f"),
    "?": "?",
}
_INTEGERS = {1: "byte", 4: "i32", 8: "i64"}


class Carried(NamedTuple):
    """Numbers as the tree takes them."""

    value: bytes
    element: str
    back: Callable[[bytes], bytes]
    """Makes numbers of the caller's type of a result."""


def carry(call: str, view: memoryview, flat: memoryview, op: Operation) -> Carried:
    """A buffer's numbers for the tree; a TypeError where they are none that it combines in this way."""
    kind = _KINDS.get(view.format.lstrip("<=@"))
    if kind is None:
        raise TypeError(f"{call}: numbers of type '{view.format}' are not combined; use integers, float32 or float64")
    if op not in _OPERATIONS[kind]:
        allowed = ", ".join(one.label for one in _OPERATIONS[kind])
        raise TypeError(f"{call}: {op!r} does not apply to numbers of type '{view.format}', but {allowed}")
    size = view.itemsize
    if kind == "f":
        return Carried(bytes(flat), f"f{8 * size}", _unchanged)
    own = f"<{'u' if kind == '?' else kind}{size}"
    value = _truths(flat, own) if op in _LOGICAL else bytes(flat)
    if size == 2:
        return Carried(_converted(value, own, "<i4"), "i32", lambda result: _converted(result, "<i4", own))
    is_signed_there = size > 1
    if op in _ORDER and (kind == "i") != is_signed_there:
        return Carried(_inverted(value, size), _INTEGERS[size], lambda result: _inverted(result, size))
    return Carried(value, _INTEGERS[size], _unchanged)


class Apart(NamedTuple):
    """Numbers that are gathered for a function of the program."""

    value: bytes
    fold: Callable[[Iterable[tuple[int, bytes]]], bytes]
    """Makes the result of the values of all, each with its virtual node, in the order of these."""


def keep_apart(call: str, view: memoryview, flat: memoryview, function: Operator) -> Apart:
    """A buffer's numbers with what is done to them: members must agree on that before any is combined."""
    import numpy  # noqa: PLC0415  # Few programs need it for this.

    if not callable(function):
        raise TypeError(f"{call}: op is an operation such as sapwood.SUM, or a function of two arrays")
    dtype = numpy.asarray(view).dtype
    label = getattr(function, "__name__", type(function).__name__)
    own = (label, dtype.str, flat.nbytes)

    def fold(values: Iterable[tuple[int, bytes]]) -> bytes:
        folded: Any = None
        for name, value in sorted(values):
            theirs, block = pickle.loads(value)
            if theirs != own:
                text = "{2} bytes of type '{1}' by '{0}'"
                raise GroupError(
                    f"{call}: virtual node {name} combines {text.format(*theirs)}, this member {text.format(*own)}"
                )
            array = numpy.frombuffer(block, dtype)
            if folded is None:
                # The function may change its first array.
                folded = array.copy()
                continue
            made = numpy.asarray(function(folded, array))
            if made.shape != array.shape:
                raise ValueError(f"{call}: '{label}' has made {made.shape} of arrays of {array.shape} elements")
            folded = made.astype(dtype, casting="same_kind")
        result: bytes = folded.tobytes()
        return result

    return Apart(pickle.dumps((own, bytes(flat))), fold)


def _unchanged(value: bytes) -> bytes:
    return value


def _truths(value: memoryview, own: str) -> bytes:
    import numpy  # noqa: PLC0415  # Few programs need it for this.

    truths: bytes = (numpy.frombuffer(value, own) != 0).astype(own).tobytes()
    return truths


def _converted(value: bytes, old: str, new: str) -> bytes:
    import numpy  # noqa: PLC0415

    return numpy.frombuffer(value, old).astype(new).tobytes()


def _inverted(value: bytes, size: int) -> bytes:
    import numpy  # noqa: PLC0415

    numbers = numpy.frombuffer(value, f"<u{size}")
    inverted: bytes = (numbers ^ numpy.array(1 << (8 * size - 1), numbers.dtype)).tobytes()
    return inverted

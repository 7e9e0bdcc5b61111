"""Regions of a Python program; see sapwood_mpi.h for what they do.

    from sapwood_region import region

    with region("solve"):
        ...
    mark_round()
    found = advice()

Without Sapwood's shim preloaded nothing happens.
"""

import contextlib
import ctypes

__all__ = ["advice", "begin", "end", "mark_round", "region"]


def _function(name):
    """The preloaded shim's function, or one that does nothing."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return lambda _: None
    function.argtypes = [ctypes.c_char_p]
    function.restype = None
    return function


_begin = _function("sapwood_region_begin")
_end = _function("sapwood_region_end")


_program = ctypes.CDLL(None)
_round = getattr(_program, "sapwood_round", lambda: None)
_advice = getattr(_program, "sapwood_advice", None)


def begin(name: str) -> None:
    """Opens the region for this thread."""
    _begin(name.encode())


def end(name: str) -> None:
    """Closes the innermost open region of that name."""
    _end(name.encode())


class Advice(ctypes.Structure):
    """struct sapwood_advice of sapwood_mpi.h."""

    _fields_ = [
        ("round", ctypes.c_ulonglong),
        ("ranks", ctypes.c_uint),
        ("slowest_rank", ctypes.c_uint),
        ("compute_mean_s", ctypes.c_double),
        ("compute_max_s", ctypes.c_double),
        ("imbalance", ctypes.c_double),
        ("slowest_class", ctypes.c_char * 24),
    ]


def mark_round() -> None:
    """Marks an iteration of this rank."""
    _round()


def advice() -> "Advice | None":
    """What the monitor has found in its latest round; None while there is nothing."""
    found = Advice()
    return found if _advice is not None and _advice(ctypes.byref(found)) else None


@contextlib.contextmanager
def region(name: str):
    """Opens the region for the body of a `with`, and closes it whatever happens."""
    encoded = name.encode()
    _begin(encoded)
    try:
        yield
    finally:
        _end(encoded)

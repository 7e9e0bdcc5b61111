"""Regions of a Python program; see sapwood_mpi.h for what they do.

    from sapwood_region import region

    with region("solve"):
        ...

Without Sapwood's shim preloaded nothing happens.
"""

import contextlib
import ctypes

__all__ = ["begin", "end", "region"]


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


def begin(name: str) -> None:
    """Opens the region for this thread."""
    _begin(name.encode())


def end(name: str) -> None:
    """Closes the innermost open region of that name."""
    _end(name.encode())


@contextlib.contextmanager
def region(name: str):
    """Opens the region for the body of a `with`, and closes it whatever happens."""
    encoded = name.encode()
    _begin(encoded)
    try:
        yield
    finally:
        _end(encoded)

"""A tree of processes that asks every process of a job and names the missing ones.

A front-end opens a `Network` and a stream on it, sends values down and receives an answer that the tree
has made of all answers; a `BackEnd` receives and answers.

    with sapwood.Network("4^2", [sys.executable, "worker.py"]) as network:
        total = network.stream(up="sum").ask("load", timeout=10)
        print(total.value, "from", total.contributors, "without", total.missing)

docs/python.md says the rest.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING

if not TYPE_CHECKING and _find_spec(f"{__name__}._native") is None:
    __all__ = []
    _WITHOUT_NATIVE = ("errors", "scope", "torch")

    def __getattr__(name: str) -> object:
        """`sapwood.torch` and `sapwood.scope` need no more than Python; all else needs the library."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _WITHOUT_NATIVE:
            return _import_module(f"{__name__}.{name}")
        raise ImportError(f"sapwood.{name} needs the native module, which this Python does not have; install the wheel")
else:
    from . import errors, scope, sketch
    from ._native import (
        FIRST_TAG,
        VERSION,
        Answer,
        Arrivals,
        AttachPoint,
        BackEnd,
        Event,
        FilterFile,
        Missing,
        Network,
        NodeStatus,
        Packet,
        RankSet,
        Status,
        Stream,
        Wave,
    )
    from .causes import Cause
    from .errors import *  # noqa: F403
    from .errors import __all__ as _errors
    from .filters import PythonFilter
    from .group import (
        ANY_SOURCE,
        ANY_TAG,
        BAND,
        BOR,
        IN_PLACE,
        LAND,
        LOR,
        MAX,
        MIN,
        PROD,
        SUM,
        BypassCount,
        Group,
        GroupRequest,
        PartCount,
        ReduceCounts,
        make_key,
    )
    from .programs import binary, node_program

    __version__ = VERSION

    __all__ = [
        "ANY_SOURCE",
        "ANY_TAG",
        "BAND",
        "BOR",
        "FIRST_TAG",
        "IN_PLACE",
        "LAND",
        "LOR",
        "MAX",
        "MIN",
        "PROD",
        "SUM",
        "Answer",
        "Arrivals",
        "AttachPoint",
        "BackEnd",
        "BypassCount",
        "Cause",
        "Event",
        "FilterFile",
        "Group",
        "GroupRequest",
        "Missing",
        "Network",
        "NodeStatus",
        "Packet",
        "PartCount",
        "PythonFilter",
        "RankSet",
        "ReduceCounts",
        "Status",
        "Stream",
        "Wave",
        "binary",
        "errors",
        "make_key",
        "node_program",
        "scope",
        "sketch",
    ]
    __all__ += _errors

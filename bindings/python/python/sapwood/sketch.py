"""Sketches: what the sketch filters answer with, and what can be asked of them.

    answer = network.stream(up="quantiles").ask(timeout=10)
    latencies = sapwood.sketch.Quantiles(answer)
    print(latencies.quantile(0.99), "within", latencies.relative_error)

Each filter has a class, which takes an `Answer`, or a `Packet` in a filter of one's own; `read` gives the one
that fits. docs/sketches.md says what each bounds.
"""

from __future__ import annotations

from ._native import (
    Distinct,
    HeavyHitters,
    Histogram,
    HistogramBin,
    Hitter,
    ItemSet,
    Kll,
    PrefixNode,
    PrefixTree,
    Quantiles,
    TopEntry,
    TopK,
)
from ._native import read_sketch as read

__all__ = [
    "Distinct",
    "HeavyHitters",
    "Histogram",
    "HistogramBin",
    "Hitter",
    "ItemSet",
    "Kll",
    "PrefixNode",
    "PrefixTree",
    "Quantiles",
    "TopEntry",
    "TopK",
    "read",
]

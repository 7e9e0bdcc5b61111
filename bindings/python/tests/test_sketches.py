"""Sketches over a real tree, asked for what is known of the data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sapwood
from sapwood import sketch

from conftest import HANG, Opener


@pytest.fixture
def tree(opened: Opener) -> Iterator[sapwood.Network]:
    yield opened("2x2")


def asked(network: sapwood.Network, up: str | tuple[str | float, ...], kind: str) -> sapwood.Answer:
    with network.stream(up=up) as stream:
        return stream.ask("sample", kind, timeout=HANG)


def test_quantiles_are_within_what_they_promise(tree: sapwood.Network) -> None:
    quantiles = sketch.Quantiles(asked(tree, "quantiles", "numbers"))
    assert (quantiles.count, quantiles.left_out, quantiles.relative_error) == (1000, 0, 0.01)
    assert (quantiles.min, quantiles.max) == (1.0, 1000.0)
    assert quantiles.quantile(0.99) == pytest.approx(990, rel=quantiles.relative_error)
    kll = sketch.Kll(asked(tree, ("kll", 200), "numbers"))
    assert kll.quantile(0.5) == pytest.approx(500, abs=kll.rank_error(1e-9) + 1)
    assert (kll.count, kll.rank(1000), kll.min, kll.max) == (1000, 1000, 1.0, 1000.0)
    empty = sketch.Quantiles(asked(tree, "quantiles", "nothing"))
    assert (empty.quantile(0.5), empty.min, empty.count) == (None, None, 0)


def test_numbers_are_counted_in_bins(tree: sapwood.Network) -> None:
    histogram = sketch.Histogram(asked(tree, ("histogram", 0.0, 1000.0, 10), "numbers"))
    assert [bin.count for bin in histogram.bins] == [99] + [100] * 9
    assert (histogram.bins[9].low, histogram.bins[9].high) == (900.0, 1000.0)
    assert (histogram.under, histogram.over, histogram.count) == (0, 1, 1000)


def test_lines_are_counted_and_told_apart(tree: sapwood.Network) -> None:
    distinct = sketch.Distinct(asked(tree, "distinct", "lines"))
    assert (distinct.estimate, distinct.standard_error) == (5.0, 0.0)
    hitters = sketch.HeavyHitters(asked(tree, ("heavy-hitters", 8), "lines"))
    assert [(hitter.item, hitter.at_least, hitter.at_most) for hitter in hitters.hitters[:2]] == [
        ("disk full", 8, 8),
        ("line 0", 1, 1),
    ]
    assert (hitters.count, hitters.error) == (12, 0)
    assert repr(hitters.hitters[0]) == "Hitter('disk full', 8 to 8 times)"
    few = sketch.ItemSet(asked(tree, ("union", 2), "lines"))
    assert (few.items, few.is_complete, len(few)) == (["disk full", "line 0"], False, 2)
    numbers = sketch.ItemSet(asked(tree, "union", "integers"))
    assert (numbers.items, numbers.is_complete) == ([-5, 2**64 - 1], True)
    assert -5 in numbers and 2**64 - 1 in numbers and "disk full" in few
    assert 7 not in numbers and "7" not in numbers and None not in numbers


def test_the_largest_are_named_and_everybody_is_found(tree: sapwood.Network) -> None:
    top = sketch.TopK(asked(tree, ("top", 1), "load"))
    (first,) = top.entries
    assert (first.number, first.count, str(first.ranks), top.left_out) == (10, 2, "1,3", 0)
    stacks = sketch.PrefixTree(asked(tree, "prefix-tree", "stack"))
    assert str(stacks) == "main: 0-3\n  send: 1,3\n  wait: 0,2\n"
    assert [(node.depth, node.name, str(node.ranks)) for node in stacks.nodes] == [
        (0, "main", "0-3"),
        (1, "send", "1,3"),
        (1, "wait", "0,2"),
    ]
    assert (stacks.stacks, str(stacks.ranks), stacks.is_complete) == (4, "0-3", True)
    assert (stacks.nodes[0].stacks, stacks.nodes[0].ending, stacks.nodes[1].ending) == (4, 0, 2)


def test_any_kind_is_read_and_another_one_refused(tree: sapwood.Network) -> None:
    answer = asked(tree, "distinct", "lines")
    assert isinstance(sketch.read(answer), sketch.Distinct)
    with pytest.raises(sapwood.ValuesError, match="a sketch of 'distinct', not of 'top'"):
        sketch.TopK(answer)
    with pytest.raises(sapwood.ValuesError, match="which is no sketch"):
        sketch.read(asked(tree, "sum", "load"))
    with pytest.raises(TypeError, match="out of an Answer or a Packet"):
        sketch.read(7)  # type: ignore[arg-type]
    failed = asked(tree, "sum", "stack")
    with pytest.raises(sapwood.NoValueError):
        sketch.read(failed)

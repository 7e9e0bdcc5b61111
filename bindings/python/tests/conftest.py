"""What the stories of these tests share: networks of `worker.py`, and a look for what they leave."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sapwood

FOLDER = Path(__file__).parent
WORKER = [sys.executable, str(FOLDER / "worker.py")]
PYTHON_NODE = [sys.executable, "-m", "sapwood.node"]
TOPOLOGIES = ["1x1", "2", "2x2"]
HANG = 60.0
"""A wait that gets this far hangs, in seconds."""

ORDER = os.environ.pop("SAPWOOD_TESTS_ORDER", "")
"""A number that draws the order of the tests, as `cargo xtask repeat` sets it."""

Opener = Callable[..., sapwood.Network]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests into the order that was asked for, if any was."""
    if ORDER:
        random.Random(ORDER).shuffle(items)


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens networks of `worker.py`, and closes them."""
    networks: list[sapwood.Network] = []

    def opener(topology: str = "2", **settings: Any) -> sapwood.Network:
        settings.setdefault("back_end", WORKER)
        network = sapwood.Network(topology, startup_timeout=HANG, **settings)
        networks.append(network)
        return network

    yield opener
    for network in networks:
        network.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Each test ends with the processes and descriptors that it began with."""
    before = children()
    yield
    until = time.monotonic() + HANG
    while left := children() - before:
        assert time.monotonic() < until, f"processes are left: {left}"
        time.sleep(0.02)


def wait_until_awaited(file: Path) -> None:
    """Waits until a back-end of worker.py that was asked for "until" waits for this file."""
    until = time.monotonic() + HANG
    while not Path(f"{file}.awaited").exists():
        assert time.monotonic() < until, f"no back-end waits for {file}"
        time.sleep(0.001)


def wait_until_gone(processes: set[int]) -> None:
    """Waits until these processes are no more."""
    until = time.monotonic() + HANG
    while left := children() & processes:
        assert time.monotonic() < until, f"processes are left: {left}"
        time.sleep(0.02)


def children() -> set[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            state, parent = stat.rpartition(") ")[2].split()[:2]
            if state not in "ZX":
                parents[int(entry)] = int(parent)
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {os.getpid()}} - found:
        found |= more
    return found

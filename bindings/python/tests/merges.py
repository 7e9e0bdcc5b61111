"""Filters of these tests, which processes of the tree import by this module's name."""

from __future__ import annotations

import os
import time

import numpy
import sapwood


def total(wave: sapwood.Wave) -> object:
    """The sum of all values."""
    return sum(wave.values)


def arrays(wave: sapwood.Wave) -> object:
    """The greatest of each element."""
    return numpy.maximum.reduce(wave.values)


def scaled(wave: sapwood.Wave, factor: int) -> object:
    """The sum, times a parameter once."""
    return sum(wave.values) * (factor if wave.is_root else 1)


def report(wave: sapwood.Wave) -> object:
    """Which processes are in it, and where: one text from each process."""
    texts = [text for values in wave.values for text in (values if isinstance(values, list) else [])]
    return [*texts, f"{wave.rank}:{wave.contributors}:{len(wave.packets)}:{wave.is_root}"]


def failing(wave: sapwood.Wave) -> object:
    """Raises where the wave has an odd number, and only below the front-end."""
    if (wave.question or 0) % 2 and not wave.is_root:
        raise ValueError(f"wave {wave.question} is odd")
    return sum(wave.values)


def rubbish(wave: sapwood.Wave) -> object:
    """Gives what no packet holds."""
    return {"a": wave}


def nothing(wave: sapwood.Wave) -> object:
    """Gives no packet but the last of three."""
    return sum(wave.values) if not wave.is_root or wave.question == 2 else None


def several(wave: sapwood.Wave) -> None:
    """Emits by itself, and sends a packet back."""
    if wave.is_root:
        wave.emit(sum(wave.values), "by hand", tag=200)
    else:
        wave.emit(sum(wave.values))


def doubled(wave: sapwood.Wave) -> object:
    """Of a packet on its way down: twice its number."""
    word, number = wave.values[0]
    return word, number * 2


def vanishing(wave: sapwood.Wave) -> object:
    """Ends its process, as a fault in an extension would."""
    if not wave.is_root:
        os._exit(9)
    return 0


def endless(wave: sapwood.Wave) -> object:
    """Does not come back."""
    while not wave.is_root:
        time.sleep(0.05)
    return 0


def busy(wave: sapwood.Wave) -> object:
    """Does not come back, and does not rest."""
    while wave:
        pass
    return 0


def asleep(wave: sapwood.Wave) -> object:
    """Does not come back, and takes no step of Python."""
    if not wave.is_root:
        time.sleep(1e6)
    return 0


def quorum(arrivals: sapwood.Arrivals, at_least: int) -> object:
    """A rule: forwards a wave with this many children."""
    return arrivals.arrived >= at_least


def patient(arrivals: sapwood.Arrivals, seconds: float) -> object:
    """A rule: when three children have arrived, waits for this long; the front-end waits for all."""
    return None if arrivals.is_root or arrivals.arrived < 3 else seconds - arrivals.elapsed


def confused(arrivals: sapwood.Arrivals) -> object:
    """A rule that does not say what it wants."""
    return f"{arrivals}"


class Running:
    """All sums so far, from a start."""

    def __init__(self, start: int = 0) -> None:
        self.sum = start

    def __call__(self, wave: sapwood.Wave) -> object:
        """Adds this wave's values at the front-end only."""
        if not wave.is_root:
            return sum(wave.values)
        self.sum += sum(wave.values)
        return self.sum


number = 7

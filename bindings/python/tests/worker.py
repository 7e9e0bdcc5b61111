"""The back-end of these tests: does what the first value of each packet says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy

import sapwood

# Less than tests wait for an answer.
FILE_SECONDS_MAX = 50


def answer(back_end: sapwood.BackEnd, packet: sapwood.Packet) -> None:
    """Answers one request."""
    what, *rest = packet.values or ("rank",)
    rank = back_end.rank
    if what == "rank":
        back_end.reply(packet, rank)
    elif what == "echo":
        back_end.reply(packet, *rest, format=" ".join(packet.format.split()[1:]))
    elif what == "array":
        back_end.reply(packet, numpy.full(rest[0], rank + 1, dtype=rest[1]))
    elif what == "environment":
        back_end.reply(packet, os.environ.get(rest[0], ""))
    elif what == "sleep":
        back_end.flush()
        time.sleep(rest[0])
        back_end.reply(packet, rank)
    elif what == "until":
        back_end.flush()
        back_end.reply(packet, rank if until_file(rest[0]) else -1)
    elif what == "die":
        os._exit(3)
    elif what == "silent":
        return
    elif what == "unasked":
        back_end.send(packet.stream, -1)
        back_end.reply(packet, rank)
        assert back_end.try_send(packet.stream, -2)
    elif what == "twice":
        back_end.reply(packet, rank)
        try:
            back_end.reply(packet, rank)
        except sapwood.MisuseError as error:
            back_end.send(packet.stream, str(error))
    elif what == "sample":
        back_end.reply(packet, sample(rest[0], rank))
    elif what == "tags":
        refused = [is_refused(back_end, packet, tag) for tag in (sapwood.FIRST_TAG - 1, 0, -1)]
        back_end.reply(packet, int(all(refused)))
    elif what == "hush":
        # Waves go without those that are named, so that the stream may be closed when others answer.
        if rank not in rest:
            back_end.reply(packet, rank)
    else:
        back_end.reply(packet, f"what is '{what}'?")


def until_file(path: str) -> bool:
    """Says by another file that it waits for this one; whether that has come."""
    Path(path + ".awaited").touch()
    end = time.monotonic() + FILE_SECONDS_MAX
    while not os.path.exists(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def is_refused(back_end: sapwood.BackEnd, packet: sapwood.Packet, tag: int) -> bool:
    """Whether no packet goes up with that tag."""
    try:
        back_end.send(packet.stream, 1, tag=tag)
    except sapwood.MisuseError:
        return True
    return False


def sample(kind: str, rank: int) -> Any:
    """What sketches are made of."""
    if kind == "numbers":
        return numpy.arange(rank * 250 + 1.0, rank * 250 + 251.0)
    if kind == "nothing":
        return numpy.empty(0)
    if kind == "lines":
        return ["disk full", f"line {rank}", "disk full"]
    if kind == "load":
        return rank % 2 * 10
    if kind == "integers":
        return numpy.uint64(2**64 - 1) if rank % 2 else -5
    return ["main", "send" if rank % 2 else "wait"]


def main() -> None:
    """Serves until the network ends."""
    if sys.argv[1:] == ["fail"]:
        sys.exit("this back-end fails on purpose")
    with sapwood.BackEnd.from_environment() as back_end:
        for packet in back_end:
            answer(back_end, packet)


if __name__ == "__main__":
    main()

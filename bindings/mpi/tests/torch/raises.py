"""Ends as its argument says, without another rank."""

import os
import signal
import sys

from launched import dist, join, torch


def deep():
    try:
        dist.all_reduce("no tensor")
    except RuntimeError as error:
        raise LookupError("not reduced") from error


join()
dist.all_reduce(torch.ones(1))
if sys.argv[1] == "error":
    deep()
if sys.argv[1] == "exit":
    sys.exit(7)
if sys.argv[1] == "text":
    sys.exit("an end in words")
if sys.argv[1] == "signal":
    os.kill(os.getpid(), signal.SIGTERM)

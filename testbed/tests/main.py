"""Stories on hosts of their own.

    testbed/tests/run PROGRAM [STORY...]
"""

import os
import re
import signal
import sys
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import surroundings

# What `run` and a developer tell the stories, and what packages are loaded by.
INPUTS = ("SAPWOOD", "SAPWOOD_BUILD", "SAPWOOD_TARGET", "TESTBED_HOSTS", "TESTBED_OUTSIDE", "TESTBED_STATE",
          "XDG_CACHE_HOME", "DEBIAN_FRONTEND", "http_proxy", "https_proxy", "no_proxy")
surroundings.keep_only(*INPUTS)

from stories import HOSTS, OWNED, PROGRAM, is_dynamic, testbed
from test_commands import Commands, Copies, Hosts, KilledFrontEnds, WarmTree
from test_languages import Languages
from test_mpi import MpiJobs
from test_owners import Owners
from test_processors import Processors
from test_requirements import Requirements
from test_slurm import Allocation
from test_start import Ends, LostHosts, Outages, StartUp, Strangers, WrongClock
from test_trace import Traces

__all__ = [
    "Allocation", "Commands", "Copies", "Ends", "Hosts", "KilledFrontEnds", "Languages", "LostHosts", "MpiJobs",
    "Outages", "Owners", "Processors", "Requirements", "StartUp", "Strangers", "Traces", "WarmTree", "WrongClock",
]


def chosen(words):
    """Names of stories as unittest takes them: it names those that fail by their module, too."""
    return [re.sub(r"^test_\w+\.(?=[A-Z])", "", word) for word in words]


def main():
    """Raises the hosts, runs the stories, and takes the hosts down."""
    if os.geteuid() != 0:
        print("testbed-test: needs root, to make hosts of network namespaces", file=sys.stderr)
        return 2
    if not os.access(PROGRAM, os.X_OK):
        print("testbed-test: SAPWOOD names no program", file=sys.stderr)
        return 2
    # A shell has what it runs in the background ignore it, and what that runs, too.
    # One that is terminated takes the hosts down, too; unittest lets no other exception through.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    # nohup has it ignored.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    if not is_dynamic():
        # The system's clock cannot be hidden from it.
        del globals()["WrongClock"]
    testbed("up", str(HOSTS), "--sshd", *OWNED)
    try:
        outcome = unittest.main(verbosity=2, exit=False, argv=chosen(sys.argv)).result
    finally:
        testbed("down")
    return 0 if outcome.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

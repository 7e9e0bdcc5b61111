"""Which tests of a program are run beside another program, and which alone, and in which order.

`make truth` runs programs in two turns: all of them, two at a time, without the tests that are marked by `alone`, and
then these, one after another. Programs take their `load_tests` from here. SAPWOOD_MPI_TURN says which turn it is;
without it a program runs all its tests.

SAPWOOD_TESTS_ORDER is a number that draws the order of the tests, as `cargo xtask repeat` sets it; without it they run
in the order of their names.

SAPWOOD_MPI_TESTS_CHOSEN names a file that a program makes if it has a test to run, so that `make test-mpi` knows
whether any program had one.
"""

import os
import random
import unittest

SHARED, ALONE = "shared", "alone"
# The reason of all tests that count arrivals.
LATENESS = "which rank comes last is counted, and a rank that gets no processor comes late, too"
# What a test starts does not see it.
TURN = os.environ.pop("SAPWOOD_MPI_TURN", "")
ORDER = os.environ.pop("SAPWOOD_TESTS_ORDER", "")
CHOSEN = os.environ.pop("SAPWOOD_MPI_TESTS_CHOSEN", "")
if TURN not in ("", SHARED, ALONE):
    raise SystemExit(f"SAPWOOD_MPI_TURN is '{TURN}', and not {SHARED} or {ALONE}")


def alone(reason):
    """Marks a test, or a class of tests, whose result is changed by other work on the machine; says by what."""
    def mark(marked):
        marked.runs_alone = reason
        return marked
    return mark


def runs_alone(test):
    """Whether a test is marked, or its class, or a class above that."""
    method = getattr(test, test.id().rpartition(".")[2], None)
    return hasattr(method, "runs_alone") or hasattr(type(test), "runs_alone")


def of_turn(suite, turn):
    """The tests of a suite that belong to a turn; all of them without one."""
    kept = unittest.TestSuite()
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            kept.addTest(of_turn(one, turn))
        elif not turn or runs_alone(one) == (turn == ALONE):
            kept.addTest(one)
    return kept


def in_order(suite, order):
    """The same tests in the order that a number draws: class by class, so that each is set up once."""
    if not order:
        return suite
    drawn = random.Random(order)
    classes = [list(tests) for tests in suite]
    drawn.shuffle(classes)
    for tests in classes:
        drawn.shuffle(tests)
    return unittest.TestSuite(map(unittest.TestSuite, classes))


def load_tests(_loader, suite, _pattern):
    """What unittest asks a program for its tests."""
    tests = in_order(of_turn(suite, TURN), ORDER)
    if CHOSEN and tests.countTestCases():
        with open(CHOSEN, "w", encoding="utf-8"):
            pass
    return tests

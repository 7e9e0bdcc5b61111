"""Runs the tests of a program, and says by its exit code where none of them was chosen."""

import sys
import unittest

# As unittest has it from Python 3.12 on.
NONE_CHOSEN = 5


def run_tests(argv, verbosity=1):
    """Runs those tests of the program itself that its arguments choose, and ends it."""
    result = unittest.main(argv=argv, verbosity=verbosity, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.testsRun or result.skipped else NONE_CHOSEN)

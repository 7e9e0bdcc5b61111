"""What installs packages as root."""

import os
import re
import unittest

import surroundings

REQUIREMENTS = os.path.join(os.path.dirname(os.path.realpath(surroundings.__file__)), "requirements")


class Requirements(unittest.TestCase):
    """Steps that install packages one after another."""

    def test_no_other_user_can_hold_the_lock(self):
        """Its folder is root's, and others cannot make files there."""
        with open(REQUIREMENTS, encoding="utf-8") as file:
            lock = re.search(r"^lock=(/\S+)$", file.read(), re.MULTILINE)
        folder = os.stat(os.path.dirname(lock[1]))
        self.assertEqual((folder.st_uid, folder.st_mode & 0o022), (0, 0), lock[1])

    def test_packages_are_loaded_by_the_network_of_the_machine(self):
        """Stories run in another one, in which no archive is reached."""
        outside = os.environ["TESTBED_OUTSIDE"]
        self.assertNotEqual(os.stat(outside).st_ino, os.stat("/proc/self/ns/net").st_ino)

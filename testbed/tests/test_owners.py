"""A test bed has an owner: once that has ended, the next test bed removes what it left."""

import os
import subprocess

from stories import HOSTS, OWNED, STATE, Story, TESTBED, testbed


class Owners(Story):
    """Hosts whose owner lives, and hosts whose owner was killed."""

    def test_hosts_of_a_living_owner_stay(self):
        """Another test bed is refused, and names the process; another process removes none of them."""
        done = subprocess.run([TESTBED, "up", "1", *OWNED], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"testbed: process {OWNED[1]} has a test bed up\n")
        self.assertEqual(testbed("down", "--owner", "1"), "process 1 has no test bed up\n")
        self.assertEqual(len(testbed("list").splitlines()), HOSTS)

    def test_hosts_of_a_killed_owner_are_removed(self):
        """They are gone before those of the next one are made; with a notice."""
        testbed("down")
        self.addCleanup(testbed, "up", str(HOSTS), "--sshd", *OWNED)
        self.addCleanup(testbed, "down")
        with subprocess.Popen(["sleep", "infinity"]) as owner:
            try:
                testbed("up", "3", "--owner", str(owner.pid))
            finally:
                owner.kill()
        done = subprocess.run([TESTBED, "up", "2", "--bare"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, f"testbed: removes the hosts that process {owner.pid} has left behind\n")
        self.assertEqual(len(testbed("list").splitlines()), 2)
        # These have no owner, and stay until they are taken down.
        done = subprocess.run([TESTBED, "up", "1"], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "testbed: a test bed is up, or was left behind; first 'testbed down'\n")

    def test_an_owner_has_to_be_there(self):
        """A number that no process has is refused, and nothing is made; the one that is there removes its hosts."""
        testbed("down", *OWNED)
        self.addCleanup(testbed, "up", str(HOSTS), "--sshd", *OWNED)
        with subprocess.Popen(["true"]) as ended:
            pass
        done = subprocess.run([TESTBED, "up", "1", "--owner", str(ended.pid)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"testbed: there is no process {ended.pid}, which would own the test bed\n")
        self.assertEqual(testbed("list"), "")
        self.assertFalse(os.path.exists(STATE))

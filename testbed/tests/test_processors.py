"""Hosts with processors of their own: what they are, and which tree is chosen over them."""

import glob
import subprocess

from stories import HOSTS, OWNED, PROGRAM, Story, TESTBED, examine, name, names, testbed

LIMITED = 6
SHARE = 0.2


class Processors(Story):
    """Hosts that do not wait for each other's work."""

    @classmethod
    def setUpClass(cls):
        testbed("down")
        testbed("up", str(LIMITED), "--sshd", "--processors", str(SHARE), *OWNED)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        testbed("down")
        left = glob.glob("/sys/fs/cgroup/**/testbed-*", recursive=True)
        testbed("up", str(HOSTS), "--sshd", *OWNED)
        if left:
            raise AssertionError(f"groups are left: {left}")

    def test_each_is_a_machine_of_its_own(self):
        """Its processes belong to its group, those of a log-in, too, and it has a boot id that no other has."""
        boots = set()
        for index in range(LIMITED):
            text = testbed("login", "ssh", name(index), "cat", "/proc/self/cgroup", "/proc/sys/kernel/random/boot_id")
            self.assertIn(f"/testbed-{name(index)}\n", text)
            boots.add(text.splitlines()[-1])
        self.assertEqual(len(boots), LIMITED)
        self.assertIn("/testbed-login\n", testbed("login", "cat", "/proc/self/cgroup"))

    def test_more_than_there_are_cannot_be_given(self):
        """The test bed says how many are asked for, before it makes anything."""
        testbed("down")
        self.afterwards("up", str(LIMITED), "--sshd", "--processors", str(SHARE), *OWNED)
        for words, why in ((["40", "--processors", "9"], "are 369, and there are"), (["2", "--processors", "-1"], "are -3"),
                           (["2", "--processors", "0"], "are 0, and there are"),
                           (["2", "--bare", "--processors", "0.1"], "bare hosts are only networks")):
            done = subprocess.run([TESTBED, "up", *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f"^testbed: .*{why}.*\n$")
            self.assertEqual(testbed("list"), "")

    def test_hosts_whose_clients_lack_processors_are_not_called_missing(self):
        """All log-ins at once are more work than this host has done when the host's time is over."""
        down = name(LIMITED - 1)
        testbed("kill", down)
        self.afterwards("boot", down)
        run = [TESTBED, "login", PROGRAM, "run", "--cold", "-n", "-b", "-t", "2", "-f", str(LIMITED)]
        done = subprocess.run([*run, "-w", names(LIMITED), "true"], capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if "missing: " in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(down, said[0])

    def test_hosts_that_were_reached_reach_others(self):
        """Log-ins that delay each other are shared out over the hosts, as soon as that was measured."""
        report = examine(names(LIMITED), "-t", "60")
        self.assertEqual(report["code"], 0, report)
        self.assertEqual(report["links"]["machines"], LIMITED)
        run = ["login", PROGRAM, "run", "--cold", "-n", "-t", "60", "-w", names(LIMITED)]
        self.assertRegex(testbed(*run, "--dry-run", "true"), rf"\ntree: p:[0-9.]+@{LIMITED}: [0-9]+ ms to start instead")
        said = testbed(*run, "hostname")
        for index in range(LIMITED):
            self.assertIn(f"{name(index)}: {name(index)}\n", said)

"""What every story on the test bed's hosts has: the hosts, a tree over them, and that nothing is left.

After each story no process and no file may be left on any host.
"""

import json
import os
import subprocess
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TESTBED = os.path.join(os.path.dirname(HERE), "testbed")
STATE = os.environ.get("TESTBED_STATE", "/run/testbed")
PROGRAM = os.environ.get("SAPWOOD", "")
# What runs on hosts lies beside it.
NODE_PROGRAM = PROGRAM + "-node"
HOSTS = int(os.environ.get("TESTBED_HOSTS", "64"))
# The hosts belong to the process that runs the stories: what it leaves when it is killed, the next run removes.
OWNED = ["--owner", str(os.getpid())]

# No story may take longer. The time is for machines with much else to do.
STORY_SECONDS_MAX = 180
# How long a host may take to be found silent, as the stories ask for.
CONNECT_SECONDS = 20
# After which nothing may be left of a network that has ended, in order or because its front-end has.
END_SECONDS_MAX = 30

SSHD = """
Port 22
HostKey {key}
AuthorizedKeysFile {keys}
PasswordAuthentication yes
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
{more}
"""


def testbed(*words, check=True):
    """Runs a command of the test bed."""
    done = subprocess.run([TESTBED, *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise OSError(f"testbed {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def is_dynamic():
    """Whether the program takes what it is linked with from the host that it runs on."""
    with open(NODE_PROGRAM, "rb") as program:
        return b"/ld-linux" in program.read(1 << 16)


def name(index):
    """A host's name."""
    return f"node{index:02d}"


def names(count):
    """The first hosts, as an argument."""
    return ",".join(name(index) for index in range(count))


def command(hosts, *words, prepare=""):
    """The command line of an examination of hosts, as on a log-in node."""
    call = [PROGRAM, "doctor", "--hosts", hosts, *words]
    if prepare:
        return [TESTBED, "login", "sh", "-c", prepare + '; exec "$@"', "login", *call]
    return [TESTBED, "login", *call]


def examine(hosts, *words, prepare=""):
    """What the doctor says of hosts: by name, with exit code, standard error and report."""
    timeout = () if "-t" in words else ("-t", str(CONNECT_SECONDS))
    line = command(hosts, "--json", *timeout, *words, prepare=prepare)
    done = subprocess.run(line, capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False)
    if not done.stdout:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    report["code"] = done.returncode
    report["stderr"] = done.stderr
    report["by_name"] = {host["host"]: host for host in report["hosts"]}
    return report


def processes():
    """How many processes each host has."""
    return {line.split()[0]: int(line.split()[2]) for line in testbed("list").splitlines()}


def files():
    """Files that are left in the private folders of hosts."""
    left = []
    for index in range(HOSTS):
        look = "find /tmp /dev/shm -mindepth 1 -name 'sapwood*'"
        left += testbed("exec", name(index), "sh", "-c", look, check=False).split()
    return left


class Story(unittest.TestCase):
    """A test after which nothing is left."""

    @classmethod
    def setUpClass(cls):
        cls.quiet = processes()

    def setUp(self):
        self.repairs = []
        self.begun = []

    def afterwards(self, *words):
        """Has the test bed do something before it is looked at what is left."""
        self.repairs.append(words)

    def tearDown(self):
        for process in self.begun:
            process.kill()
            process.communicate()
        for words in reversed(self.repairs):
            testbed(*words)
        self.assert_nothing_left()

    def wait_until(self, what, is_so):
        """Waits until something is so."""
        until = time.monotonic() + STORY_SECONDS_MAX
        while not is_so():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.05)

    def begun_processes(self):
        """How many processes all hosts have beyond those that they had before."""
        return sum(count - self.quiet.get(host, 0) for host, count in processes().items())

    def assert_nothing_left(self):
        """Waits until no host has more processes than before, within the stated deadline."""
        until = time.monotonic() + END_SECONDS_MAX
        while True:
            now = processes().items()
            left = {host: count for host, count in now if count > self.quiet.get(host, count)}
            if not left:
                return
            if time.monotonic() > until:
                host = next(iter(left))
                shown = testbed("exec", host, "ps", "axo", "pid,ppid,args", check=False)
                self.fail(f"processes are left: {left}; on {host}:\n{shown}")
            time.sleep(0.05)

    def assert_only_missing(self, report, missing):
        """Exactly these hosts are missing, each with its reason; `missing` has a part of each."""
        said = {host["host"]: host["reason"] for host in report["hosts"] if host["state"] != "ok"}
        self.assertEqual(sorted(said), sorted(missing), f"{said}\n{report['stderr']}")
        for host, reason in missing.items():
            self.assertRegex(said[host], reason)
        self.assertEqual(report["code"], 255 if missing else 0)

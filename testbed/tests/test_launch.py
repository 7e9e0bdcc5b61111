"""Trees over the test bed's hosts, started by ssh, and what they make of hosts that fail.

Each story starts a tree by `sapwood doctor --hosts`, as a user on a log-in node would, and looks at
what it says of every host. After each story no process and no file may be left on any host.

    testbed/tests/run PROGRAM [STORY...]
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TESTBED = os.path.join(os.path.dirname(HERE), "testbed")
STATE = os.environ.get("TESTBED_STATE", "/run/testbed")
PROGRAM = os.environ.get("SAPWOOD", "")
HOSTS = int(os.environ.get("TESTBED_HOSTS", "64"))

# No story may take longer. The time is for machines with much else to do.
STORY_SECONDS_MAX = 180
# How long a host may take to be found silent, as the stories ask for.
CONNECT_SECONDS = 8
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
        self.assertEqual(report["code"], 125 if missing else 0)


class StartUp(Story):
    """Trees of all shapes stand."""

    def whole(self, count, fan_out):
        # All log-ins are this machine's own work, at both ends.
        report = examine(names(count), "--fan-out", str(fan_out), "-t", "60")
        self.assert_only_missing(report, {})
        for host in report["hosts"]:
            self.assertEqual(host["host"], host["name"], "each runs where it belongs")
        print(f"    {count} hosts, fan-out {fan_out}: {report['levels']} levels,"
              f" {report['startup_ms']:.0f} ms, a wave {report['round_trip_ms']:.2f} ms")

    def test_fan_out_1(self):
        self.whole(min(HOSTS, 8), 1)

    def test_fan_out_2(self):
        self.whole(HOSTS, 2)

    def test_fan_out_8(self):
        self.whole(HOSTS, 8)

    def test_fan_out_64(self):
        self.whole(HOSTS, 64)

    def test_beside_plain_log_ins(self):
        def log_in(hosts):
            began = time.monotonic()
            calls = [[TESTBED, "login", "ssh", host, "true"] for host in hosts]
            running = [subprocess.Popen(call, stdin=subprocess.DEVNULL) for call in calls]
            for process in running:
                self.assertEqual(process.wait(timeout=STORY_SECONDS_MAX), 0)
            return (time.monotonic() - began) * 1e3

        one = sorted(log_in([name(index)]) for index in range(5))[2]
        everybody = log_in([name(index) for index in range(HOSTS)])
        report = examine(names(HOSTS), "--fan-out", "8", "-t", "60")
        self.assert_only_missing(report, {})
        levels, took = report["levels"], report["startup_ms"]
        print(
            f"    one log-in {one:.0f} ms; {HOSTS} at once, without a tree, {everybody:.0f} ms;"
            f" the tree of {levels} levels {took:.0f} ms, {took / (one * levels):.1f} x log-in x levels,"
            f" {took / everybody:.2f} x the log-ins alone"
        )

    def test_copies_of_the_program_leave_nothing(self):
        folder = tempfile.mkdtemp(prefix="sapwood-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        hidden = shutil.copy(PROGRAM, os.path.join(folder, "sapwood"))
        look = [TESTBED, "login", hidden, "doctor", "--hosts", names(6), "--fan-out", "2", "--json"]
        done = subprocess.run(look, capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(files(), [])

    def test_a_dry_run_starts_nothing_and_shows_no_secret(self):
        done = subprocess.run(
            command(names(4), "--dry-run", "--fan-out", "2"), capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout.count("# on "), 6)
        self.assertIn("BatchMode=yes", done.stdout)
        self.assertEqual(processes(), self.quiet)

    def test_the_tree_is_chosen_by_what_was_measured(self):
        report = examine(names(HOSTS), "-t", "60")
        self.assert_only_missing(report, {})
        links = report["links"]
        for key in ("latency_us", "overhead_us", "log_in_latency_us", "log_in_overhead_us"):
            self.assertGreater(links[key], 0, report)
        # From now on trees over these hosts are chosen by that.
        done = subprocess.run(
            [TESTBED, "login", PROGRAM, "run", "--dry-run", "-w", names(HOSTS), "true"],
            capture_output=True, text=True, check=True,
        )
        why = next(line for line in done.stdout.splitlines() if line.startswith("tree: "))
        self.assertIn(f"as measured within the last hour on {HOSTS} hosts", why)
        print(f"    {why}; links {links}")

    def test_communication_processes_on_hosts_of_their_own(self):
        report = examine(names(5), "--shape", "g:2:3,2", "--communication-hosts", "node[05-06]")
        self.assert_only_missing(report, {})
        self.assertEqual(report["levels"], 2)

    def test_sockets_are_bound_to_the_chosen_interface(self):
        report = examine(names(3), "--interfaces", "10.77.0.0/16")
        self.assert_only_missing(report, {})
        for host in report["hosts"]:
            self.assertIn("to 10.77.", host["path"])

    def test_no_socket_is_open_elsewhere_than_at_the_chosen_interface(self):
        # A communication process on the first host, which takes connections.
        line = command(names(3), "--watch", "60", "--shape", "1x3", "--interfaces", "10.77.0.0/16")
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                break
        listening = testbed("exec", name(0), "ss", "-Hltn").splitlines()
        ours = [row.split()[3] for row in listening if not row.split()[3].endswith(":22")]
        self.assertEqual([place.rsplit(":", 1)[0] for place in ours], ["10.77.1.1"])


class LostHosts(Story):
    """A host that fails costs itself and nobody else."""

    FAULTY = 2  # With fan-out 2 over 8 hosts it is a communication process's, too.

    def look(self, reason, prepare=""):
        began = time.monotonic()
        report = examine(names(8), "--fan-out", "2", prepare=prepare)
        self.assert_only_missing(report, {name(self.FAULTY): reason})
        print(f"    {report['by_name'][name(self.FAULTY)]['reason']} ({time.monotonic() - began:.1f} s)")

    def instead_of_sshd(self, *words):
        """Runs something at the port of ssh of the faulty host, in the place of its sshd."""
        host = name(self.FAULTY)
        testbed("exec", host, "sh", "-c", "pkill -x sshd; sleep 0.2")
        if not words:
            return
        other = subprocess.Popen([TESTBED, "exec", host, *words], stdin=subprocess.DEVNULL)
        self.addCleanup(other.wait)
        until = time.monotonic() + 10
        while ":0016" not in testbed("exec", host, "cat", "/proc/net/tcp"):
            if time.monotonic() > until:
                self.fail(f"nothing listens at {host}")
            time.sleep(0.05)

    def renew(self):
        """The faulty host is started anew afterwards."""
        self.afterwards("boot", name(self.FAULTY))
        self.afterwards("kill", name(self.FAULTY))

    def other_sshd(self, **settings):
        """An sshd of another configuration."""
        folder = tempfile.mkdtemp(prefix="sshd-", dir=STATE)
        self.addCleanup(shutil.rmtree, folder)
        values = {"key": f"{STATE}/host_key", "keys": f"{STATE}/authorized_keys", "more": "",
                  **settings}
        path = os.path.join(folder, "config")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SSHD.format(**values))
        self.instead_of_sshd("/usr/sbin/sshd", "-D", "-f", path)

    def test_a_host_that_is_down(self):
        self.afterwards("boot", name(self.FAULTY))
        testbed("kill", name(self.FAULTY))
        self.look("timed out|No route to host|no answer")

    def test_a_host_that_refuses(self):
        self.renew()
        self.instead_of_sshd()
        self.look("Connection refused")

    def test_a_host_that_hangs(self):
        self.afterwards("thaw", name(self.FAULTY))
        testbed("freeze", name(self.FAULTY))
        self.look("timed out|no answer")

    def test_a_host_that_is_silent_after_accept(self):
        self.renew()
        silent = (
            "import socket,time\n"
            "s=socket.create_server(('0.0.0.0',22)); kept=[]\n"
            "while True: kept.append(s.accept())"
        )
        self.instead_of_sshd("python3", "-c", silent)
        self.look("timed out|no answer")

    def test_a_host_that_asks_for_a_password(self):
        self.renew()
        self.other_sshd(keys="/dev/null")
        self.look("Permission denied")

    def test_a_host_with_an_unknown_key(self):
        self.renew()
        folder = tempfile.mkdtemp(prefix="key-", dir=STATE)
        self.addCleanup(shutil.rmtree, folder)
        key = os.path.join(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.other_sshd(key=key)
        self.look("Host key verification failed")

    def test_a_name_of_a_wrong_machine(self):
        wrong = os.path.join(STATE, "wrong-hosts")
        with open(os.path.join(STATE, "hosts"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        address = next(line.split()[0] for line in lines if line.endswith(name(5)))
        faulty = name(self.FAULTY)
        lines = [f"{address} {faulty}" if line.endswith(faulty) else line for line in lines]
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.addCleanup(os.remove, wrong)
        # Only the log-in node has the wrong table, and it is that one that reaches the host.
        report = examine(names(4), "--fan-out", "4", prepare=f"mount --bind {wrong} /etc/hosts")
        self.assert_only_missing(report, {faulty: f"calls itself '{name(5)}'"})

    def test_a_name_that_nobody_has(self):
        report = examine(names(3) + ",node99.invalid", "--fan-out", "2")
        self.assert_only_missing(report, {"node99.invalid": "Could not resolve hostname"})


    def test_a_host_with_a_wrong_clock(self):
        self.renew()
        fake = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[0]
        # What runs there finds its clock an hour and a half ahead; it is all the same to the tree.
        self.other_sshd(more=f'SetEnv LD_PRELOAD={fake} FAKETIME=+5400s DONT_FAKE_MONOTONIC=1')
        report = examine(names(4), "--fan-out", "4")
        self.assert_only_missing(report, {})
        said = [line for line in report["stderr"].splitlines() if "clock" in line]
        self.assertEqual(len(said), 1, report["stderr"])
        self.assertRegex(said[0], f"host {name(self.FAULTY)}: its clock is (5399|540[0-9]) s ahead of ours")
        print(f"    {said[0]}")


class Ends(Story):
    """However a network ends, nothing is left."""

    def begin(self, count, *words):
        """A network that is being watched; once it stands."""
        line = command(names(count), "--watch", "120", *words)
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                return process
        self.fail(f"it does not stand: {process.communicate()}")
        return process

    def ended(self, what, process, number):
        began = time.monotonic()
        os.kill(process.pid, number)
        process.wait(timeout=END_SECONDS_MAX)
        self.assert_nothing_left()
        print(f"    {what}: nothing left after {time.monotonic() - began:.2f} s")

    def test_the_front_end_is_killed(self):
        process = self.begin(min(HOSTS, 16), "--fan-out", "2")
        self.ended("kill -9 of the front-end, 16 hosts, fan-out 2", process, signal.SIGKILL)

    def test_the_user_presses_ctrl_c(self):
        process = self.begin(min(HOSTS, 16), "--fan-out", "2")
        self.ended("Ctrl-C, 16 hosts, fan-out 2", process, signal.SIGINT)

    def test_the_front_end_is_killed_while_it_starts(self):
        line = command(names(min(HOSTS, 16)), "--fan-out", "2", "--watch", "60")
        for delay in (0.2, 0.6, 1.2):
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            self.assert_nothing_left()

    def test_a_host_dies(self):
        process = self.begin(8, "--fan-out", "2")
        # A communication process's host: those below it go on.
        testbed("crash", name(2))
        self.afterwards("boot", name(2))
        for line in process.stdout:
            if line.startswith("missing"):
                self.assertIn(name(2), line)
                break
        # A little later no other has gone missing.
        time.sleep(3)
        self.ended("kill -9 after a host had died", process, signal.SIGKILL)
        self.assertNotIn("missing", process.stdout.read())

    def test_a_session_is_killed(self):
        process = self.begin(4, "--fan-out", "4")
        # The log-in process of sshd on one host: the process there goes on without it.
        testbed("exec", name(1), "sh", "-c", "pkill -9 -f '[s]shd: root@notty'")
        time.sleep(3)
        self.assertIsNone(process.poll())
        self.ended("kill -9 after a session had died", process, signal.SIGKILL)
        self.assertNotIn("missing", process.stdout.read())


class Outages(Story):
    """What takes its time to be noticed."""

    def test_the_front_ends_host_is_switched_off(self):
        # Not this machine for once, which is none to switch off.
        line = [TESTBED, "exec", name(0), PROGRAM, "doctor", "--hosts", "node[01-05]", "--fan-out", "2",
                "--watch", "120"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                break
        # Guards have to have seen that it answers.
        time.sleep(6)
        self.assertIsNone(process.poll())
        self.afterwards("boot", name(0))
        testbed("kill", name(0))
        began = time.monotonic()
        # The log-ins' sshd, which is the hosts' own, waits for as long as TCP does.
        others = [name(index) for index in range(1, 6)]
        while any("sapwood" in testbed("exec", host, "ps", "axo", "args") for host in others):
            self.assertLess(time.monotonic() - began, END_SECONDS_MAX)
            time.sleep(0.2)
        print(f"    host of the front-end switched off: nothing left after {time.monotonic() - began:.1f} s")


class Commands(Story):
    """Commands on hosts that are reached by ssh."""

    def command(self, *words):
        """The command line, as on a log-in node."""
        return [TESTBED, "login", PROGRAM, "run", "-t", str(CONNECT_SECONDS), *words]

    def run_it(self, *words, given=""):
        """What a command on hosts comes to."""
        return subprocess.run(
            self.command(*words), input=given, capture_output=True, text=True,
            timeout=STORY_SECONDS_MAX, check=False,
        )

    def test_equal_answers_are_written_once(self):
        for fan_out in ("1", "2", "16"):
            done = self.run_it("-b", "-f", fan_out, "-w", "node[00-07]", "echo the same; echo aside >&2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("node[00-07] (8)", done.stdout)
            self.assertEqual(done.stdout.count("the same"), 1)
            self.assertIn("aside", done.stderr)

    def test_each_host_runs_it_by_itself(self):
        done = self.run_it("-w", "node[00-07]", "-f", "2", "hostname")
        lines = {f"{name(index)}: {name(index)}" for index in range(8)}
        self.assertEqual(set(done.stdout.splitlines()), lines, done.stderr)

    def test_a_host_that_is_down_is_named(self):
        testbed("kill", name(3))
        self.afterwards("boot", name(3))
        done = self.run_it("-b", "-w", "node[00-07]", "-f", "2", "echo here; exit 4")
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertIn("node[00-02,04-07] (7)", done.stdout)
        self.assertRegex(done.stderr, "node03 .*missing: .*(timed out|No route|no answer)")
        done = self.run_it("-b", "--quorum", "1", "-w", "node[00-07]", "exit 4")
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_a_host_that_goes_down_meanwhile_is_named(self):
        line = self.command("-w", "node[00-03]", "-f", "2", "echo begun; sleep 6; echo done")
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        begun = [process.stdout.readline() for _ in range(4)]
        self.assertEqual(sorted(begun), [f"{name(index)}: begun\n" for index in range(4)])
        testbed("crash", name(2))
        self.afterwards("boot", name(2))
        said, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        done = sorted(f"{name(index)}: done" for index in (0, 1, 3))
        self.assertEqual(sorted(said.splitlines()), done, complaints)
        self.assertEqual(process.returncode, 255, complaints)
        self.assertIn(name(2), complaints)

    def test_standard_input_comes_to_all(self):
        given = "".join(f"line {number}\n" for number in range(20_000))
        done = self.run_it("-b", "-w", "node[00-03]", "-f", "2", "md5sum", given=given)
        self.assertIn("node[00-03] (4)", done.stdout, done.stderr)

    def test_nothing_is_left_of_commands_that_are_interrupted(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            line = self.command("-w", "node[00-07]", "-f", "2", "echo begun; sleep 1000")
            process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
            self.begun.append(process)
            for _ in range(8):
                self.assertIn("begun", process.stdout.readline())
            process.send_signal(number)
            process.wait(timeout=END_SECONDS_MAX)
            self.assert_nothing_left()


class Hosts(Story):
    """What hosts that are reached by ssh are doing."""

    def test_a_hung_host_is_named_and_the_others_go_on(self):
        line = [TESTBED, "login", PROGRAM, "top", "-t", str(CONNECT_SECONDS), "-f", "2", "--json"]
        line += ["--interval", "0.5", "-w", "node[00-07]"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)

        def sample_where(is_such):
            until = time.monotonic() + STORY_SECONDS_MAX
            for said in process.stdout:
                sample = json.loads(said)
                if is_such(sample):
                    return sample
                self.assertLess(time.monotonic(), until, said)
            return self.fail(process.stderr.read())

        sample = sample_where(lambda sample: not sample["missing"])
        load = next(metric for metric in sample["metrics"] if metric["name"] == "load.1")
        self.assertEqual((sample["answered"]["nodes"], load["count"]), ("node[00-07]", 8))
        # The last one has nobody below it in any tree.
        frozen = name(7)
        self.afterwards("thaw", frozen)
        testbed("freeze", frozen)
        # A busy machine may make another one late, but not in every wave.
        sample = sample_where(lambda sample: [one["nodes"] for one in sample["missing"]] == [frozen])
        self.assertEqual(sample["missing"][0]["reason"], "no answer within 250 ms")
        self.assertEqual(sample["answered"]["nodes"], "node[00-06]")
        testbed("thaw", frozen)
        sample_where(lambda sample: not sample["missing"])
        process.send_signal(signal.SIGINT)
        process.wait(timeout=END_SECONDS_MAX)
        self.assertEqual(process.returncode, 130)


class WarmTree(Story):
    """Commands in a tree over hosts that stays up between them."""

    def setUp(self):
        super().setUp()
        folder = tempfile.mkdtemp(prefix="sapwood-story-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, folder)
        self.surroundings = {**os.environ, "XDG_RUNTIME_DIR": folder}
        done = self.say("up", "-t", str(CONNECT_SECONDS), "-w", "node[00-07]", "-f", "2")
        self.assertEqual(done.returncode, 0, done.stderr)

    def tearDown(self):
        done = self.say("down")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.surroundings["XDG_RUNTIME_DIR"], "sapwood")), [])
        super().tearDown()

    def say(self, *words):
        """A command of Sapwood's on the log-in node."""
        return subprocess.run(
            [TESTBED, "login", PROGRAM, *words], env=self.surroundings, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False,
        )

    def test_commands_need_no_further_log_in(self):
        agents = [self.say("run", "-L", "-w", "node[02-05]", "echo $PPID; hostname; pwd") for _ in range(2)]
        self.assertEqual(agents[0].returncode, 0, agents[0].stderr)
        self.assertEqual(agents[0].stdout, agents[1].stdout)
        for index in range(2, 6):
            self.assertIn(f"{name(index)}: {name(index)}\n", agents[0].stdout)
        self.assertIn(f"{name(2)}: {os.getcwd()}\n", agents[0].stdout)
        done = self.say("run", "-b", "-w", "node[00-07]", "seq 10000")
        self.assertIn("node[00-07] (8)", done.stdout, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 10_003)
        done = self.say("status", "--network", "warm")
        self.assertIn(name(7), done.stdout, done.stderr)

    def test_a_host_that_dies_is_missing_until_there_is_another_tree(self):
        testbed("crash", name(3))
        self.afterwards("boot", name(3))
        for _ in range(2):
            done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
            self.assertEqual(done.returncode, 255, done.stderr)
            self.assertIn("node[00-02,04-07] (7)", done.stdout)
            self.assertRegex(done.stderr, "node03 .*missing: ")
        testbed("boot", name(3))
        self.repairs.clear()
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
        self.assertEqual(done.returncode, 255, done.stderr)
        done = self.say("run", "--cold", "-b", "-w", "node[00-07]", "echo here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("node[00-07] (8)", done.stdout)


class Copies(Story):
    """Files to hosts that are reached by ssh, and back."""

    COUNT = 8
    EVERYBODY = "node[00-07]"

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="copies-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name_of_it):
        return os.path.join(self.folder, name_of_it)

    def make(self, name_of_it, megabytes):
        """A file of random bytes; its digest."""
        with open(self.path(name_of_it), "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
        return self.say(None, f"sha256sum < {self.path(name_of_it)}")

    def say(self, host, script):
        """What a shell's command says on a host, or here."""
        call = ["sh", "-c", script]
        if host is not None:
            return testbed("exec", host, *call, check=False).strip()
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()

    def everywhere(self, script, count=COUNT):
        return {name(index): self.say(name(index), script) for index in range(count)}

    def command(self, *words):
        """The command line, as on a log-in node."""
        return [TESTBED, "login", PROGRAM, "copy", "-t", str(CONNECT_SECONDS), "-w", self.EVERYBODY, *words]

    def copy(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True,
                              timeout=STORY_SECONDS_MAX, check=False)

    def begin_copy(self, *words):
        """A copy that has begun to arrive on every host."""
        process = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        until = time.monotonic() + STORY_SECONDS_MAX
        while not all(self.everywhere("find /tmp -name '.*.sapwood-part' -size +0").values()):
            self.assertLess(time.monotonic(), until, "nothing arrives")
            self.assertIsNone(process.poll(), "it is over too soon")
        return process

    def forget(self, *paths):
        for path in paths:
            self.everywhere(f"rm -rf {path}")

    def test_a_file_is_the_same_everywhere(self):
        digest = self.make("file", 20)
        for fan_out in ("1", "2", "16"):
            done = self.copy("-f", fan_out, self.path("file"), "/tmp/copy")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(set(self.everywhere("sha256sum < /tmp/copy").values()), {digest})
            self.forget("/tmp/copy")

    def test_a_folder_keeps_its_links_and_holes(self):
        self.make("file", 1)
        tree = self.path("tree")
        self.say(None, f"mkdir -p {tree}/a/b && cd {tree} && cp ../file a/ && ln a/file again && ln -s a/file link"
                       " && truncate -s 1G sparse && chmod 750 a && touch -d 2001-02-03 a && mkfifo pipe")
        done = self.copy(tree, "/tmp/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, f"sapwood: {tree}/pipe: is a named pipe, left out\n")
        look = ("cd {} && find . ! -name pipe ! -path . -printf '%P %y %m %T@ %l %n\n' | sort"
                " && sha256sum a/file && du -k sparse")
        expected = self.say(None, look.format(tree))
        self.assertEqual(set(self.everywhere(look.format("/tmp/tree")).values()), {expected})
        self.forget("/tmp/tree")

    def test_a_full_disk_leaves_nothing_under_the_name(self):
        digest = self.make("file", 8)
        self.everywhere("mkdir /tmp/place")
        self.say(name(3), "mount -t tmpfs -o size=2m tmpfs /tmp/place")
        tree = self.path("tree")
        self.say(None, f"mkdir {tree} && cp {self.path('file')} {tree}/file")
        for source, copied in (("file", "file"), ("tree", "tree/file")):
            done = self.copy("-f", "2", self.path(source), "/tmp/place/")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, "^sapwood: node03 .*/tmp/place/.*: No space left on device\n")
            said = self.everywhere(f"sha256sum < /tmp/place/{copied}")
            self.assertEqual(said.pop(name(3)), "")
            self.assertEqual(set(said.values()), {digest})
            self.assertEqual(self.say(name(3), "ls -A /tmp/place"), "")
        self.say(name(3), "umount /tmp/place")
        self.forget("/tmp/place")

    def test_a_host_that_dies_meanwhile_costs_only_itself(self):
        digest = self.make("file", 200)
        process = self.begin_copy("-f", "2", self.path("file"), "/tmp/copy")
        # A communication process's host, too.
        testbed("crash", name(4))
        self.afterwards("boot", name(4))
        _, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        self.assertEqual(process.returncode, 255, complaints)
        # The ssh client may have a word to say, too.
        named = [line for line in complaints.splitlines() if line.startswith("sapwood: ")]
        self.assertEqual(len(named), 1, complaints)
        self.assertRegex(named[0], "^sapwood: node04 .*missing: ")
        said = self.everywhere("sha256sum < /tmp/copy")
        said.pop(name(4))
        self.assertEqual(set(said.values()), {digest})
        self.forget("/tmp/copy")

    def test_an_interrupted_copy_goes_on(self):
        digest = self.make("file", 200)
        process = self.begin_copy("-f", "2", self.path("file"), "/tmp/copy")
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        self.assertEqual(process.returncode, 130, complaints)
        self.assert_nothing_left()
        self.assertEqual(set(self.everywhere("ls /tmp/copy").values()), {""})
        done = self.copy("-f", "2", self.path("file"), "/tmp/copy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(set(self.everywhere("sha256sum < /tmp/copy").values()), {digest})
        self.assertEqual(set(self.everywhere("find /tmp -name '*.sapwood-part'").values()), {""})
        self.forget("/tmp/copy")

    def test_files_come_back_by_host(self):
        self.everywhere("mkdir -p /tmp/place/inner && hostname > /tmp/place/name && seq 100000 > /tmp/place/inner/log")
        back = self.path("back")
        done = self.copy("--gather", "-f", "2", "/tmp/place", "/tmp/absent", back)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr, f"sapwood: {self.EVERYBODY} (8): /tmp/absent: No such file or directory\n")
        for index in range(self.COUNT):
            with open(os.path.join(back, name(index), "place", "name"), encoding="utf-8") as file:
                self.assertEqual(file.read().strip(), name(index))
            self.assertEqual(self.say(None, f"wc -l < {back}/{name(index)}/place/inner/log"), "100000")
        self.forget("/tmp/place")

    def test_a_host_that_is_down_is_named(self):
        digest = self.make("file", 1)
        testbed("kill", name(1))
        self.afterwards("boot", name(1))
        done = self.copy("-f", "2", self.path("file"), "/tmp/copy")
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertRegex(done.stderr, "node01 .*missing: .*(timed out|No route|no answer)")
        said = self.everywhere("sha256sum < /tmp/copy")
        said.pop(name(1))
        self.assertEqual(set(said.values()), {digest})
        self.forget("/tmp/copy")


class Strangers(Story):
    """Another user of the same hosts neither joins a tree nor reads what it is secret by."""

    def test_another_user_stays_outside(self):
        line = command(names(2), "--watch", "60", "--fan-out", "1")
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                break
        host = name(0)
        # Nothing that everybody can read of our processes looks like a key.
        lines = testbed("exec", host, "ps", "axo", "args")
        self.assertNotRegex(lines, "[0-9a-f]{64}")
        as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        pid = testbed("exec", host, "pgrep", "-o", "-f", "sapwood node").split()[0]
        for secret in ("environ", "fd", "maps"):
            look = [TESTBED, "exec", host, *as_nobody, "ls" if secret == "fd" else "cat", f"/proc/{pid}/{secret}"]
            done = subprocess.run(look, capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0, secret)
            self.assertEqual(done.stdout, b"", secret)
        # With a key of its own it is turned away.
        listening = testbed("exec", host, "sh", "-c", "ss -Hltn | grep -v ':22 '")
        door = listening.split()[3]
        script = (
            "umask 077; cd $(mktemp -d); head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' >key; "
            f'echo "5 tcp:{door} +1 on $PWD/key" >attach; '
            f"timeout 20 {PROGRAM} node --join attach; code=$?; rm -rf $PWD; exit $code"
        )
        look = [TESTBED, "exec", host, *as_nobody, "sh", "-c", script]
        done = subprocess.run(look, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("key", done.stderr)
        print(f"    {done.stderr.strip()}")
        self.assertIsNone(process.poll())


class Allocation(Story):
    """Trees in a Slurm allocation."""

    SLURM = TESTBED + "-slurm"

    @classmethod
    def setUpClass(cls):
        requirements = os.path.join(os.path.dirname(TESTBED), "requirements")
        subprocess.run([requirements, "slurm"], stdout=subprocess.DEVNULL, check=True)
        subprocess.run([cls.SLURM, "up"], check=True)
        cls.quiet = processes()

    @classmethod
    def tearDownClass(cls):
        subprocess.run([cls.SLURM, "down"], check=True)

    def in_job(self, *words):
        call = [self.SLURM, "exec", name(0), "salloc", "--quiet", "-N", str(min(HOSTS, 8)), PROGRAM, "doctor"]
        return [*call, "--hosts", names(min(HOSTS, 8)), "--fan-out", "2", *words]

    def test_steps_share_the_allocation(self):
        done = subprocess.run(
            self.in_job("--json"), capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        for host in report["hosts"]:
            self.assertEqual(host["host"], host["name"])
        print(f"    {len(report['hosts'])} hosts by Slurm, fan-out 2: {report['startup_ms']:.0f} ms")

    def test_nothing_is_left_when_the_front_end_is_killed(self):
        line = self.in_job("--watch", "60")
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                break
        testbed("exec", name(0), "pkill", "-9", "-f", "sapwood doctor --hosts", check=False)


    def test_beside_a_job_that_runs(self):
        job = subprocess.Popen(
            [self.SLURM, "exec", name(0), "salloc", "-N", "3", "srun", "sleep", "100"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.begun.append(job)
        number = next(line.split()[-1] for line in job.stderr if "Granted" in line)
        self.wait_for_step(number)
        try:
            # Not inside of its allocation, and all its processors are taken.
            look = [self.SLURM, "exec", name(0), PROGRAM, "doctor", "-j", number, "--hosts", names(3), "--json"]
            done = subprocess.run(look, capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            self.assertIsNone(job.poll(), "the job goes on")
        finally:
            subprocess.run([self.SLURM, "exec", name(0), "scancel", number], check=True)
        job.wait(timeout=END_SECONDS_MAX)

    def wait_for_step(self, number):
        until = time.monotonic() + END_SECONDS_MAX
        look = [self.SLURM, "exec", name(0), "squeue", "--noheader", "--steps", "--jobs", number]
        while f"{number}.0" not in subprocess.run(look, capture_output=True, text=True, check=True).stdout:
            self.assertLess(time.monotonic(), until, "the job's step has not started")
            time.sleep(0.1)

    def test_the_allocation_ends_during_start_up(self):
        # One host hangs, so that the start-up waits for it; meanwhile the job is cancelled.
        self.afterwards("thaw", name(2))
        testbed("freeze", name(2))
        count = min(HOSTS, 8)
        line = [self.SLURM, "exec", name(0), "salloc", "-N", str(count), PROGRAM, "doctor", "-t", "60",
                "--hosts", names(count), "--fan-out", "2", "--json"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        number = next(line.split()[-1] for line in process.stderr if "Granted" in line)
        time.sleep(1)
        began = time.monotonic()
        subprocess.run([self.SLURM, "exec", name(0), "scancel", number], check=True)
        said, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        print(f"    ended {time.monotonic() - began:.1f} s after it was cancelled, code {process.returncode}")
        self.assertEqual(process.returncode, 125, complaints)
        self.assertEqual(complaints.count("and with it all that ran in it"), 1, complaints)
        self.assertRegex(complaints, f"the allocation of job {number} has ended .(CANCELLED|COMPLETING).,")
        missing = [host["host"] for host in json.loads(said)["hosts"] if host["state"] != "ok"]
        # The front-end's own host needs no step.
        self.assertEqual(missing, [name(index) for index in range(1, count)])

    def test_the_tree_follows_the_switches(self):
        call = [self.SLURM, "exec", name(0), "salloc", "--quiet", "-N", str(HOSTS), PROGRAM, "run", "--dry-run"]
        # By a guess, whatever other stories have measured.
        environment = {**os.environ, "XDG_CACHE_HOME": "/nonexistent"}
        done = subprocess.run([*call, "true"], capture_output=True, text=True, timeout=STORY_SECONDS_MAX,
                              check=True, env=environment)
        why = next(line for line in done.stdout.splitlines() if line.startswith("tree: "))
        # Few hosts are reached at once, whatever they hang at.
        self.assertRegex(why, r"\d by switch: " if HOSTS >= 32 else "tree: flat")
        print(f"    {why}")


def main():
    """Raises the hosts, runs the stories, and takes the hosts down."""
    if os.geteuid() != 0:
        print("testbed-test: needs root, to make hosts of network namespaces", file=sys.stderr)
        return 2
    if not os.access(PROGRAM, os.X_OK):
        print("testbed-test: SAPWOOD names no program", file=sys.stderr)
        return 2
    testbed("up", str(HOSTS), "--sshd")
    try:
        outcome = unittest.main(verbosity=2, exit=False, argv=sys.argv).result
    finally:
        testbed("down")
    return 0 if outcome.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

"""Trees over the test bed's hosts, started by ssh, and what they make of hosts that fail.

Each story starts a tree by `sapwood doctor --hosts`, as a user on a log-in node would, and looks at
what it says of every host.
"""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

from stories import (
    END_SECONDS_MAX, HOSTS, NODE_PROGRAM, PROGRAM, SSHD, STATE, STORY_SECONDS_MAX, Story, TESTBED, command,
    examine, files, name, names, processes, testbed,
)


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
        shutil.copy(NODE_PROGRAM, folder)
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
        for key in ("latency_us", "overhead_us", "log_in_us", "log_in_gap_us"):
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


class FaultyHost(Story):
    """A host whose ways in can be changed."""

    FAULTY = 2  # With fan-out 2 over 8 hosts it is a communication process's, too.

    def instead_of_sshd(self, *words):
        """Runs something at the port of ssh of the faulty host, in the place of its sshd."""
        host = name(self.FAULTY)
        testbed("exec", host, "pkill", "-x", "sshd")
        self.wait_until(
            f"sshd goes on on {host}", lambda: not testbed("exec", host, "pgrep", "-x", "sshd", check=False)
        )
        if not words:
            return
        other = subprocess.Popen([TESTBED, "exec", host, *words], stdin=subprocess.DEVNULL)
        self.addCleanup(other.wait)
        self.wait_until(
            f"nothing listens at {host}",
            lambda: ":0016" in testbed("exec", host, "cat", "/proc/net/tcp"),
        )

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


class LostHosts(FaultyHost):
    """A host that fails costs only its own back-ends."""

    def look(self, reason, prepare=""):
        began = time.monotonic()
        report = examine(names(8), "--fan-out", "2", prepare=prepare)
        self.assert_only_missing(report, {name(self.FAULTY): reason})
        print(f"    {report['by_name'][name(self.FAULTY)]['reason']} ({time.monotonic() - began:.1f} s)")

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
        prepare = f"mount --bind {wrong} /etc/hosts"
        report = examine(names(6), "--fan-out", "6", prepare=prepare)
        self.assert_only_missing(report, {faulty: f"calls itself '{name(5)}', which is among the hosts, too"})
        # Of a machine that is not among the hosts its user's ssh knows best which one it is.
        report = examine(names(4), "--fan-out", "4", prepare=prepare)
        self.assertEqual(report["code"], 0, report["stderr"])
        self.assertIn(f"host {faulty}: the machine that answers calls itself '{name(5)}'", report["stderr"])

    def test_a_name_without_a_host(self):
        report = examine(names(3) + ",node99.invalid", "--fan-out", "2")
        self.assert_only_missing(report, {"node99.invalid": "Could not resolve hostname"})


class WrongClock(FaultyHost):
    """A host whose clock is wrong. Only a program that is linked dynamically can be shown another time."""

    def test_a_host_with_a_wrong_clock(self):
        self.renew()
        fake = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[0]
        # What runs there finds its clock an hour and a half ahead; it is all the same to the tree.
        self.other_sshd(more=f'SetEnv LD_PRELOAD={fake} FAKETIME=+5400s DONT_FAKE_MONOTONIC=1')
        report = examine(names(4), "--fan-out", "4")
        self.assert_only_missing(report, {})
        said = [line for line in report["stderr"].splitlines() if "clock" in line]
        self.assertEqual(len(said), 1, report["stderr"])
        self.assertRegex(said[0], f"host {name(self.FAULTY)}: its clock is (5399|540[0-9]) s ahead of its parent's")
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
        for begun in (1, 8, 32):
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_until("too few processes", lambda enough=begun: self.begun_processes() >= enough)
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
        # For as long as orphans may look for a parent no other goes missing.
        time.sleep(3)
        self.ended("kill -9 after a host had died", process, signal.SIGKILL)
        self.assertNotIn("missing", process.stdout.read())

    def test_a_session_is_killed(self):
        process = self.begin(4, "--fan-out", "4")
        # The log-in process of sshd on one host: the process there goes on without it.
        testbed("exec", name(1), "sh", "-c", "pkill -9 -f '[s]shd: root@notty'")
        # For as long as an orphan may look for a parent none goes missing.
        time.sleep(3)
        self.assertIsNone(process.poll())
        self.ended("kill -9 after a session had died", process, signal.SIGKILL)
        self.assertNotIn("missing", process.stdout.read())


class Outages(Story):
    """What takes its time to be noticed."""

    def resets(self, host):
        """How many connections a host has refused."""
        rows = testbed("exec", host, "cat", "/proc/net/snmp").splitlines()
        names_row, values_row = [row.split() for row in rows if row.startswith("Tcp:")]
        return int(values_row[names_row.index("OutRsts")])

    def test_the_front_ends_host_is_switched_off(self):
        # Not this machine for once, which is none to switch off.
        line = [TESTBED, "exec", name(0), PROGRAM, "doctor", "--hosts", "node[01-05]", "--fan-out", "2",
                "--watch", "120"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        for said in process.stderr:
            if "watching" in said:
                break
        # Launch agents have to have seen that it answers: with a reset, at a closed port, whenever they ask.
        others = [name(index) for index in range(1, 6)]
        enough = self.resets(name(0)) + 2 * len(others)
        self.wait_until("launch agents do not ask", lambda: self.resets(name(0)) >= enough)
        self.assertIsNone(process.poll())
        self.afterwards("boot", name(0))
        testbed("kill", name(0))
        began = time.monotonic()
        # The log-ins' sshd, which is the hosts' own, waits for as long as TCP does.
        while any("sapwood" in testbed("exec", host, "ps", "axo", "args") for host in others):
            self.assertLess(time.monotonic() - began, END_SECONDS_MAX)
            time.sleep(0.2)
        print(f"    host of the front-end switched off: nothing left after {time.monotonic() - began:.1f} s")


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
        as_stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        pid = testbed("exec", host, "pgrep", "-o", "-f", "sapwood-node node").split()[0]
        for secret in ("environ", "fd", "maps"):
            look = [TESTBED, "exec", host, *as_stranger, "ls" if secret == "fd" else "cat", f"/proc/{pid}/{secret}"]
            done = subprocess.run(look, capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0, secret)
            self.assertEqual(done.stdout, b"", secret)
        # With a key of its own it is turned away.
        listening = testbed("exec", host, "sh", "-c", "ss -Hltn | grep -v ':22 '")
        door = listening.split()[3]
        script = (
            "umask 077; cd $(mktemp -d); head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' >key; "
            f'echo "5 tcp:{door} +1 on $PWD/key" >attach; '
            f"timeout 20 {NODE_PROGRAM} --join attach; code=$?; rm -rf $PWD; exit $code"
        )
        look = [TESTBED, "exec", host, *as_stranger, "sh", "-c", script]
        done = subprocess.run(look, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("key", done.stderr)
        print(f"    {done.stderr.strip()}")
        self.assertIsNone(process.poll())

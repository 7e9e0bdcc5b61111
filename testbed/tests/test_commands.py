"""The commands that administrators give to hosts, on hosts that are reached by ssh."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from stories import (
    CONNECT_SECONDS, END_SECONDS_MAX, HOSTS, NODE_PROGRAM, PROGRAM, STATE, STORY_SECONDS_MAX, Story, TESTBED, name,
    names, testbed,
)

# After which a host without a cable counts as lost for good: the tree's `silence` and `grace`, and
# another `silence` where a communication process is gone with it.
SILENCE_SECONDS = 5
LOST_SECONDS_MAX = 60


class Commands(Story):
    """Commands on hosts that are reached by ssh."""

    def command(self, *words):
        """The command line, as on a log-in node."""
        timeout = () if "-t" in words else ("-t", str(CONNECT_SECONDS))
        return [TESTBED, "login", PROGRAM, "run", *timeout, *words]

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
        done = self.run_it("-b", "--missing-max", "1", "-w", "node[00-07]", "exit 4")
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_only_the_host_that_is_down_is_missing_though_it_was_to_reach_others(self):
        # The first of all, one that reaches others, and one that reaches no other.
        count = min(HOSTS, 12)
        for index in (0, 4, count - 1):
            testbed("kill", name(index))
            self.afterwards("boot", name(index))
            for shape in (["-f", "2"], ["-f", "8"], []):
                done = self.run_it("-t", "30", "-b", *shape, "-w", names(count), "echo here")
                self.assertEqual(done.returncode, 255, done.stderr)
                said = [line for line in done.stderr.splitlines() if "missing: " in line]
                self.assertEqual(len(said), 1, done.stderr)
                self.assertRegex(said[0], f"{name(index)} .*missing: ")
                self.assertRegex(done.stdout, rf"node\[.*\] \({count - 1}\)", done.stderr)
            testbed("boot", name(index))
            self.repairs.clear()

    def test_a_host_that_goes_down_meanwhile_is_named(self):
        go, others = "/tmp/goes-on", [name(index) for index in (0, 1, 3)]
        for host in others:
            self.afterwards("exec", host, "rm", "-f", go)
        wait = f"echo begun; until [ -e {go} ]; do sleep 0.1; done; echo done"
        line = self.command("-w", "node[00-03]", "-f", "2", wait)
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begun.append(process)
        begun = [process.stdout.readline() for _ in range(4)]
        self.assertEqual(sorted(begun), [f"{name(index)}: begun\n" for index in range(4)])
        testbed("crash", name(2))
        self.afterwards("boot", name(2))
        for host in others:
            testbed("exec", host, "touch", go)
        said, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        done = sorted(f"{host}: done" for host in others)
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


class KilledFrontEnds(Story):
    """Hosts without the program, to which it is copied, and a front-end that is killed meanwhile."""

    COUNT = 4
    # Into how many parts the time is divided that a command takes.
    MOMENTS = 8
    # A copy of some megabytes takes seconds at this rate, whatever the machine.
    SLOW_MBIT = 4

    def setUp(self):
        super().setUp()
        # Hosts have a /tmp of their own.
        self.folder = tempfile.mkdtemp(prefix="sapwood-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        hidden = shutil.copy(PROGRAM, os.path.join(self.folder, "sapwood"))
        shutil.copy(NODE_PROGRAM, self.folder)
        # Half of the copies are made by copies.
        self.line = [TESTBED, "login", hidden, "run", "--new-tree", "-n", "-t", "60", "-f", "2"]
        self.line += ["-w", names(self.COUNT)]

    def begin(self):
        """A command that does not end by itself."""
        nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*self.line, "sleep 1000"], **nowhere)
        self.begun.append(process)
        return process

    @staticmethod
    def found(pattern):
        """Files of this pattern on all hosts."""
        found = []
        for index in range(HOSTS):
            with open(os.path.join(STATE, f"first.{name(index)}"), encoding="utf-8") as file:
                found += glob.glob(f"/proc/{file.read().strip()}/root/{pattern}")
        return found

    def left(self):
        """What hosts have of the program, and processes with its path in their arguments: clients and log-ins."""
        look = subprocess.run(["pgrep", "-af", self.folder], capture_output=True, text=True, check=False)
        return self.found("tmp/sapwood*") + self.found("dev/shm/sapwood*") + look.stdout.splitlines()

    def copies_on_their_way(self):
        """Copies of which a part has come. One that is whole goes as soon as it runs."""
        on_their_way = []
        for path in self.found("tmp/sapwood-*/sapwood"):
            with contextlib.suppress(FileNotFoundError):
                on_their_way += [path] if os.path.getsize(path) else []
        return on_their_way

    def kill(self, process):
        """Kills the front-end; afterwards nothing may be left."""
        self.assertIsNone(process.poll(), "it has ended by itself")
        process.kill()
        process.wait()

    def assert_no_copy_left(self):
        """No process and no copy, within the stated deadline."""
        self.assert_nothing_left()
        until = time.monotonic() + END_SECONDS_MAX
        while left := self.left():
            self.assertLess(time.monotonic(), until, left)
            time.sleep(0.05)

    def test_nothing_is_left_whenever_it_is_killed(self):
        began = time.monotonic()
        done = subprocess.run([*self.line, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=STORY_SECONDS_MAX, check=False)
        took = time.monotonic() - began
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assert_no_copy_left()
        for part in range(self.MOMENTS):
            process = self.begin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=took * part / self.MOMENTS)
            self.kill(process)
            self.assert_no_copy_left()

    def test_nothing_is_left_if_it_is_killed_while_a_copy_travels(self):
        hosts = [name(index) for index in range(self.COUNT)]
        for host in hosts:
            self.afterwards("shape", host, "0")
            testbed("shape", host, str(self.SLOW_MBIT))
        process = self.begin()
        self.wait_until("no copy is on its way", self.copies_on_their_way)
        self.kill(process)
        # What is in the buffers need not take its time.
        for host in hosts:
            testbed("shape", host, "0")
        self.assert_no_copy_left()


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
        # The last one is a leaf in any tree.
        frozen = name(7)
        self.afterwards("thaw", frozen)
        testbed("freeze", frozen)
        # A busy machine may make another one late, but not in every wave.
        sample = sample_where(lambda sample: [one["nodes"] for one in sample["missing"]] == [frozen])
        self.assertRegex(sample["missing"][0]["reason"], "^no answer within 250 ms")
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
        # All hosts see it.
        self.folder = tempfile.mkdtemp(prefix="sapwood-story-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.surroundings = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        # Hosts that were lost stay so, unless a story is about their return.
        self.up("--return-after", "0")

    def tearDown(self):
        done = self.say("down")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.surroundings["XDG_RUNTIME_DIR"], "sapwood")), [])
        super().tearDown()

    def say(self, *words):
        """A command of Sapwood's on the log-in node."""
        return subprocess.run(
            [TESTBED, "login", PROGRAM, *words], env=self.surroundings, cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STORY_SECONDS_MAX, check=False,
        )

    def up(self, *words):
        """Starts the tree."""
        done = self.say("up", "-t", str(CONNECT_SECONDS), "-w", "node[00-07]", "-f", "2", *words)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_commands_need_no_further_log_in(self):
        agents = [self.say("run", "-L", "-w", "node[02-05]", "echo $PPID; hostname; pwd") for _ in range(2)]
        self.assertEqual(agents[0].returncode, 0, agents[0].stderr)
        self.assertEqual(agents[0].stdout, agents[1].stdout)
        for index in range(2, 6):
            self.assertIn(f"{name(index)}: {name(index)}\n", agents[0].stdout)
        self.assertIn(f"{name(2)}: {self.folder}\n", agents[0].stdout)
        done = self.say("run", "-b", "-w", "node[00-07]", "seq 10000")
        self.assertIn("node[00-07] (8)", done.stdout, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 10_003)
        done = self.say("status", "--network", "warm")
        self.assertIn(name(7), done.stdout, done.stderr)

    def test_the_waves_of_its_commands_are_followed_to_the_slow_host(self):
        slow, rank = name(5), None
        nodes = json.loads(self.say("status", "--network", "warm", "--json").stdout)["nodes"]
        for node in nodes:
            if node["role"] == "back-end" and node.get("host") == slow:
                rank = node["rank"]
        words = ["trace", "tree", "--network", "warm", "--for", "6s", "--json"]
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as said:
            tracing = subprocess.Popen(
                [TESTBED, "login", PROGRAM, *words], env=self.surroundings, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=output, stderr=said,
            )
            while tracing.poll() is None:
                line = f"if [ $(hostname) = {slow} ]; then sleep 0.5; fi; echo here"
                done = self.say("run", "-b", "-w", "node[00-07]", line)
                self.assertEqual(done.returncode, 0, done.stderr)
            said.seek(0)
            self.assertEqual(tracing.returncode, 0, said.read())
            output.seek(0)
            report = json.load(output)
        ends = {}
        for stream in report["streams"]:
            for end in stream["path_ends"]:
                ends[end["rank"]] = ends.get(end["rank"], 0) + end["waves"]
        self.assertEqual(max(ends, key=ends.get), rank, ends)
        # Clocks of other hosts are aligned, with an error that is told.
        links = [link for stream in report["streams"] for link in stream["links"]]
        self.assertTrue(any(link["clock_error_ns"] > 0 for link in links), links)

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

    def test_hosts_that_start_again_come_back_into_the_tree(self):
        self.up("--replace", "--return-after", "0.5")
        # One has only a back-end, the other one a communication process, too.
        lost = [name(3), name(4)]
        testbed("crash", *lost)
        self.afterwards("boot", *lost)
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertRegex(done.stderr, "node(03|\\[03-04\\]) .*missing: ")
        testbed("boot", *lost)
        self.repairs.clear()
        self.wait_until("the hosts have not come back", self.is_whole)
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("node[00-07] (8)", done.stdout)

    def is_whole(self):
        """Whether the tree tells of hosts that have come back, and of none that is missing."""
        said = self.say("status", "--network", "warm").stdout
        return "came back at " in said and "missing: " not in said

    def test_a_tree_that_ends_while_a_host_is_looked_for_leaves_nothing(self):
        self.up("--replace", "--return-after", "0.5")
        lost = name(3)
        self.afterwards("boot", lost)
        # The session of the tree that stands stays, too.
        before = self.log_ins(lost)
        testbed("kill", lost)
        # A host without power refuses nothing: the log-in lasts until its time is over.
        self.wait_until("the host is not looked for", lambda: self.log_ins(lost) - before)
        done = self.say("down")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_until("a log-in is left", lambda: not self.log_ins(lost))
        # For the end of every story here, which ends a tree.
        self.up("--replace", "--return-after", "0", "-x", lost)

    @staticmethod
    def log_ins(host):
        """The ssh clients that log in to a host, on whichever host they are."""
        look = ["pgrep", "-f", f"^([^ ]*/)?ssh .*{host}"]
        return set(subprocess.run(look, capture_output=True, text=True, check=False).stdout.split())

    def test_hosts_without_a_cable_are_soon_counted_as_lost(self):
        # One has only a back-end, the other one a communication process, too.
        cut = {name(3), name(4)}
        for host in cut:
            testbed("cut", host)
            self.afterwards("heal", host)
        left = re.escape("node[00-02,05-07] (6)")
        # The tree may find the loss before the command's own limit does.
        for reason in ("for 15 s|not back within", "for 2 s, and none in the last command|not back within"):
            done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
            self.assertEqual(done.returncode, 255, done.stderr)
            self.assertRegex(done.stdout, left, done.stderr)
            self.assertRegex(done.stderr, "node(03|\\[03-04\\]) .*missing: ")
            self.assertRegex(done.stderr, reason)
        until = time.monotonic() + LOST_SECONDS_MAX
        said = ""
        while "  6/8 back-ends" not in said:
            self.assertLess(time.monotonic(), until, said)
            said = self.say("status", "--network", "warm").stdout
        # One that is not given up yet comes back with its cable. The commands that look take long on a busy machine.
        until = time.monotonic() + STORY_SECONDS_MAX
        while not self.given_up(said) >= {"03", "04"}:
            self.assertLess(time.monotonic(), until, said)
            said = self.say("run", "-b", "-w", "node[00-07]", "echo here").stderr
        for host in cut:
            testbed("heal", host)
        self.repairs.clear()
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertRegex(done.stdout, left, done.stderr)
        self.up("--replace")
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
        self.assertIn("node[00-07] (8)", done.stdout, done.stderr)

    @staticmethod
    def given_up(said):
        """Numbers of the hosts that are given up, by lines such as `node[03-04] (2): missing: ... not back within ...`."""
        lines = [line for line in said.splitlines() if "not back within" in line]
        return {number for line in lines for number in re.findall(r"\d\d", line.partition(" (")[0])}

    def test_a_host_that_only_hangs_is_not_counted_as_lost(self):
        hung = name(3)
        self.afterwards("thaw", hung)
        testbed("freeze", hung)
        until = time.monotonic() + 3 * SILENCE_SECONDS
        while time.monotonic() < until:
            said = self.say("status", "--network", "warm").stdout
            self.assertIn("  8/8 back-ends", said)
        testbed("thaw", hung)
        done = self.say("run", "-b", "-w", "node[00-07]", "echo here")
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

"""Runs programs in a divided world and in a whole one, and compares what they see.

    SAPWOOD_LIB_DIR=<folder that make filled> SAPWOOD=<command> world.py [unittest arguments]

Open MPI has three ranks of the program, MPICH two, which spin while they wait.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MPI_FOLDER = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(MPI_FOLDER, "tests"), os.path.join(MPI_FOLDER, "generate"),
                os.path.join(MPI_FOLDER, "..", "..", "testbed")]
sys.dont_write_bytecode = True

import header
import surroundings
import turns
from rank_profile import Profile

surroundings.keep_only("SAPWOOD", "SAPWOOD_LIB_DIR", **surroundings.MPI, **surroundings.runtime_folder())

LIBRARIES = os.environ["SAPWOOD_LIB_DIR"]
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
    "mpich": ["mpirun.mpich", "-np"],
}
RANKS = {"openmpi": 3, "mpich": 2}
RUN_SECONDS_MAX = 120
# The computing loop of a tool rank that polls without sleep takes all of it.
TOOL_SHARE_MAX = 0.5
PYTHON = "/usr/bin/python3"
# Where the tool has ranks of each host, of which there is one here.
BY_HOST = {"SAPWOOD_MPI_WORLD_HOSTS": socket.gethostname()}
KEY_PATH = "/proc/self/fd/4"
# Prints the rank of a tool rank, and its number on its host.
LEAF = 'echo "$SAPWOOD_RANK $SAPWOOD_MPI_LEAF"'
# A communicator by value among the parameters of a declaration.
TAKES_COMMUNICATOR = re.compile(r"(?:^|,)\s*(?:const\s+)?MPI_Comm\s+\w+\s*(?:,|$)")
# What takes one and sees the world as it is: an abort ends the whole job, and a number of Fortran is no call.
SEES_WHOLE_WORLD = {"MPI_Abort", "MPI_Comm_c2f"}
# What takes none and is told of.
BEGINS_OR_ENDS = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}


class World(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sapwood-world-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def each_mpi(self):
        for abi in LAUNCHERS:
            with self.subTest(mpi=abi):
                if not shutil.which(LAUNCHERS[abi][0]):
                    self.skipTest(f"no {abi} here")
                yield abi

    def program(self, abi, name="world/program"):
        return os.path.join(LIBRARIES, "tests", abi, name)

    def start(self, abi, ranks, command, tools=0, shim=False, behind=(), **more):
        preload = [os.path.join(LIBRARIES, f"libsapwood-mpi-{abi}.so")] if shim else []
        preload += [os.path.join(LIBRARIES, f"libsapwood-world-{abi}.so")] if tools else []
        preload += behind
        environment = {"PYTHONPATH": os.path.join(HERE, "..", "..", "region"), **more}
        if preload:
            environment["LD_PRELOAD"] = ":".join(preload)
        if tools:
            environment["SAPWOOD_MPI_WORLD_TOOLS"] = str(tools)
        line = LAUNCHERS[abi] + [str(ranks), *command]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **environment}, stdin=subprocess.DEVNULL)

    def run_to_end(self, *arguments, **more):
        running = self.start(*arguments, **more)
        try:
            out, error = running.communicate(timeout=RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            running.kill()
            out, error = running.communicate()
            self.fail(f"it hangs; so far:\n{out}\n{error}")
        return running.returncode, out, error

    def lines(self, abi, ranks, command, tools=0, **more):
        code, out, error = self.run_to_end(abi, ranks + tools, command, tools=tools, **more)
        self.assertEqual(code, 0, error)
        return out.splitlines()

    def test_every_function_that_takes_a_communicator_gets_that_of_the_divided_world(self):
        for abi in self.each_mpi():
            declared = re.findall(r"\b(MPI_\w+)\s*\(([^()]*)\)", header.preprocess(f"mpicc.{abi}"))
            taking = {name for name, parameters in declared if TAKES_COMMUNICATOR.search(parameters)}
            self.assertLessEqual({"MPI_Abort", "MPI_Send", "MPI_File_open", "MPI_Intercomm_create"}, taking)
            wanted = taking - SEES_WHOLE_WORLD | BEGINS_OR_ENDS
            library = os.path.join(LIBRARIES, f"libsapwood-world-{abi}.so")
            listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
            exported = {line.split()[-1] for line in listed.stdout.splitlines()}
            self.assertEqual(exported, wanted | {f"P{name}" for name in wanted})

    def test_a_divided_world_looks_like_a_whole_one(self):
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "0"]
            whole = self.lines(abi, RANKS[abi], command)
            self.assertGreater(len(whole), 30)
            for tools in (1, 2) if abi == "openmpi" else (1,):
                self.assertEqual(self.lines(abi, RANKS[abi], command, tools=tools), whole)

    def test_a_world_that_is_divided_by_host_looks_like_a_whole_one(self):
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "0"]
            whole = self.lines(abi, RANKS[abi], command)
            self.assertEqual(self.lines(abi, RANKS[abi], command, tools=1, **BY_HOST), whole)

    def test_ranks_are_on_the_host_of_their_name_where_mpi_sees_no_shared_memory(self):
        for abi in self.each_mpi():
            behind = [self.program(abi, "own_host.so")]
            command = [self.program(abi), os.path.join(self.folder, "file"), "0"]
            whole = self.lines(abi, RANKS[abi], command, behind=behind)
            for tools in (1, 2) if abi == "openmpi" else (1,):
                self.assertEqual(self.lines(abi, RANKS[abi], command, tools=tools, behind=behind, **BY_HOST), whole)

    def test_a_program_of_more_ranks_sees_something_else(self):
        # The comparison above can fail.
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "0"]
        whole = self.lines("openmpi", RANKS["openmpi"] + 1, command)
        self.assertNotEqual(self.lines("openmpi", RANKS["openmpi"], command, tools=1), whole)

    def counts(self, abi, command, tools):
        folder = tempfile.mkdtemp(dir=self.folder)
        self.lines(abi, RANKS[abi], command, tools=tools, shim=True, SAPWOOD_MPI_DUMP_DIR=folder)
        names = sorted(os.listdir(folder))
        self.assertEqual(names, [f"rank-{rank}.profile" for rank in range(RANKS[abi])])
        profiles = []
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                profiles.append(Profile(file.read()))
        for profile in profiles:
            self.assertEqual(profile.size, RANKS[abi])
        return [(profile.calls, profile.regions) for profile in profiles]

    def test_the_shim_counts_the_same_in_c_fortran_and_python(self):
        for abi in self.each_mpi():
            commands = [[self.program(abi, name)] for name in ("solver", "solver_mpif", "solver_usempi", "solver_f08")]
            if abi == "openmpi":
                commands.append([PYTHON, os.path.join(HERE, "..", "..", "tests", "solver_mpi4py.py")])
            for command in commands:
                if not os.path.exists(command[0]):
                    continue
                with self.subTest(command=command):
                    self.assertEqual(self.counts(abi, command, 1), self.counts(abi, command, 0))

    def profile(self, abi, ranks, *options):
        out = tempfile.mkdtemp(dir=self.folder)
        launcher = LAUNCHERS[abi]
        line = [os.environ["SAPWOOD"], "mpi", "--quiet", "--out", out, *options, "--", *launcher, str(ranks),
                self.program(abi, "solver")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "profile.json"), encoding="utf-8") as file:
            profile = json.load(file)
        events = {(event["name"], event["communicator_size_class"]): (event["ranks"], event["calls"], event["bytes"])
                  for event in profile["events"]}
        return profile["world_size"], profile["covered"], profile["missing"], profile["states"], events

    def test_a_tree_inside_the_job_finds_what_one_beside_it_finds(self):
        for abi in self.each_mpi():
            beside = self.profile(abi, RANKS[abi])
            self.assertEqual(beside[:3], (RANKS[abi], f"0-{RANKS[abi] - 1}", []))
            for tools in ("1", "1/host"):
                self.assertEqual(self.profile(abi, RANKS[abi] + 1, "--in-world", tools), beside)
        self.assertEqual(self.profile("openmpi", 5, "--in-world", "2"), self.profile("openmpi", 3))

    def test_a_job_that_does_not_start_ends_at_once_with_its_own_code(self):
        wrong = ["mpirun.openmpi", "--allow-run-as-root", "-np", "3", "--nonsense", self.program("openmpi", "solver")]
        alone = subprocess.run(wrong, capture_output=True, timeout=RUN_SECONDS_MAX, check=False)
        line = [os.environ["SAPWOOD"], "mpi", "--quiet", "--in-world", "1", "--", *wrong]
        place = {**os.environ, "TMPDIR": self.folder}
        done = subprocess.run(line, env=place, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, alone.returncode)
        self.assertIn("the program ended before its tree had started", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".join")], [])

    def refused(self, abi, option, tools, hosts):
        """The line with which a job on these hosts is refused."""
        line = [os.environ["SAPWOOD"], "mpi", "--quiet", "--in-world", tools, "--", LAUNCHERS[abi][0], option, hosts,
                "-np", "4", self.program(abi, "solver")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        [said] = [line for line in done.stderr.splitlines() if "--in-world" in line]
        return said

    def test_a_job_that_cannot_be_served_on_its_hosts_is_refused_with_the_reason(self):
        for abi, option in (("openmpi", "-H"), ("mpich", "-hosts")):
            with self.subTest(mpi=abi):
                if not shutil.which(LAUNCHERS[abi][0]):
                    self.skipTest(f"no {abi} here")
                said = self.refused(abi, option, "1", "localhost:2,198.51.100.1:2")
                self.assertIn("serves ranks of this host only", said)
                self.assertIn("198.51.100.1", said)
                said = self.refused(abi, option, "1/host", "198.51.100.1:2,203.0.113.1:2")
                self.assertIn("needs ranks on this host", said)
                self.assertIn("203.0.113.1", said)

    def tool_process(self, running, name):
        """The tool's rank: the process of this program with the highest number of a rank."""
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while time.monotonic() < deadline and running.poll() is None:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        words = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0"))
                    if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name and \
                            words.get(b"SAPWOOD_TEST_RUN") == self.folder.encode() and \
                            (words.get(b"OMPI_COMM_WORLD_RANK") or words.get(b"PMI_RANK")) == b"2":
                        return int(pid)
                except OSError:
                    continue
            time.sleep(0.01)
        self.fail("there is no tool rank")

    def cpu_seconds(self, pid):
        words = self.stat(pid)
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @turns.alone("where there is other work a rank that does not sleep takes a smaller share, too")
    def test_a_tool_rank_sleeps(self):
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "3"]
            running = self.start(abi, 3, command, tools=1, SAPWOOD_TEST_RUN=self.folder)
            try:
                for line in running.stdout:
                    if line.startswith("no parent"):
                        break
                pid = self.tool_process(running, "program")
                cpu, began = self.cpu_seconds(pid), time.monotonic()
                time.sleep(1.5)
                share = (self.cpu_seconds(pid) - cpu) / (time.monotonic() - began)
            finally:
                out, error = running.communicate(timeout=RUN_SECONDS_MAX)
            self.assertEqual(running.returncode, 0, error)
            self.assertLess(share, TOOL_SHARE_MAX)

    def stat(self, pid):
        """The fields of a process's state, from the third on."""
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()

    def until(self, is_so, what):
        """Waits until this is so."""
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.001)

    def sleeps(self, pid):
        """How often a process has gone to sleep."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            [count] = [line.split()[1] for line in file if line.startswith("voluntary_ctxt_switches")]
        return int(count)

    def kill_tool(self, running):
        """Kills the tool's rank. Its launcher, which ends the others, sees that after the leaf."""
        pid = self.tool_process(running, "program")
        leaf = self.tool_process(running, "sapwood-node")
        launcher = int(self.stat(pid)[1])
        os.kill(launcher, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            self.until(lambda: self.stat(pid)[0] == "Z", "a killed rank lives on")
            # Between two sleeps a leaf looks at all that it watches.
            slept = self.sleeps(leaf)
            self.until(lambda: self.sleeps(leaf) > slept + 1, "a leaf sleeps for ever")
        finally:
            os.kill(launcher, signal.SIGCONT)

    def test_a_tool_rank_that_is_killed_is_named_as_the_tools(self):
        for abi in self.each_mpi():
            out = tempfile.mkdtemp(dir=self.folder)
            program = [self.program(abi), os.path.join(out, "file"), "60"]
            options = ["--quiet", "--out", out, "--in-world", "1"]
            line = [os.environ["SAPWOOD"], "mpi", *options, "--", *LAUNCHERS[abi], "3", *program]
            running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "SAPWOOD_TEST_RUN": self.folder}, stdin=subprocess.DEVNULL)
            try:
                for said in running.stdout:
                    if said.startswith("no parent"):
                        break
                self.kill_tool(running)
            finally:
                _, error = running.communicate(timeout=RUN_SECONDS_MAX)
            told = "rank 2 of the job, which is the tool's (--in-world), had died before: "
            with open(os.path.join(out, "report.txt"), encoding="utf-8") as file:
                report = file.read()
            self.assertNotEqual(running.returncode, 0)
            self.assertIn("1 more rank of the job belongs to the tool (--in-world) and is not counted", report)
            for text in (error, report):
                self.assertIn(told, text)
                self.assertNotIn("died first", text)

    def test_each_tool_rank_starts_its_command_apart(self):
        told = os.path.join(self.folder, "told")
        script = f'echo "$SAPWOOD_RANK $SAPWOOD_MPI_LEAF $LD_PRELOAD $(ps -o sid= -p $$ | tr -d " ") $$ $(ls /proc/$$/fd | tr "\\n" " ")" >{told}-$SAPWOOD_RANK'
        more = {"SAPWOOD_MPI_WORLD_COMMAND": "\x1f".join(["/bin/sh", "-c", script])}
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "1"]
        self.lines("openmpi", 2, command, tools=2, **more)
        for tool in range(2):
            with open(f"{told}-{tool}", encoding="ascii") as file:
                words = file.read().split()
            number, on_host, session, process, *descriptors = words
            self.assertEqual((number, on_host, session), (str(tool), str(tool), process))
            # Its standard streams, and what the shell holds while it runs a command.
            self.assertLessEqual(len(descriptors), 5)

    def told_by_tools(self, commands):
        """Settings with which each of two tool ranks writes what these commands of a shell print; and the files of the
        two, which are there once they are whole."""
        told = os.path.join(self.folder, "told")
        script = f'{{ {commands}; }} >{told}.$SAPWOOD_RANK; mv {told}.$SAPWOOD_RANK {told}-$SAPWOOD_RANK'
        settings = {"SAPWOOD_MPI_WORLD_COMMAND": "\x1f".join(["/bin/sh", "-c", script])}
        return settings, [f"{told}-{tool}" for tool in range(2)]

    def take_written(self, texts):
        """The tool ranks have written these texts, by the path of each; the files go."""
        for path, text in texts.items():
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), text)
            os.remove(path)

    def test_tool_ranks_of_one_host_have_different_numbers_where_mpi_sees_no_shared_memory(self):
        more, files = self.told_by_tools(LEAF)
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "0", *files]
            self.lines(abi, 2, command, tools=2, behind=[self.program(abi, "own_host.so")], **more)
            self.take_written({path: f"{tool} {tool}\n" for tool, path in enumerate(files)})

    def test_a_command_is_told_the_process_of_its_rank(self):
        told = os.path.join(self.folder, "told")
        script = f'echo "$PPID $SAPWOOD_MPI_WORLD_PROCESS" >{told}.new; mv {told}.new {told}'
        more = {"SAPWOOD_MPI_WORLD_COMMAND": "\x1f".join(["/bin/sh", "-c", script])}
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "0", told]
        self.lines("openmpi", 2, command, tools=1, **more)
        with open(told, encoding="ascii") as file:
            parent, named = file.read().split()
        self.assertEqual(parent, named)

    def join_file(self, mode):
        """A join file and its key in a folder of this mode, with their texts."""
        folder = tempfile.mkdtemp(dir=self.folder)
        os.chmod(folder, mode)
        path = os.path.join(folder, "join")
        points = ["9 tcp:192.0.2.7,198.51.100.7:4000 0-1 on", "8 tcp:192.0.2.7:4001 2 on"]
        texts = ["".join(f"{point} {key}\n" for point in points) for key in (path + ".key", KEY_PATH)]
        key = "ab" * 32 + "\n"
        for name, text in ((path + ".key", key), (path, texts[0])):
            with open(name, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(text)
        return path, texts[1], key

    def test_a_join_file_of_one_host_reaches_all_tool_ranks_through_mpi(self):
        more, files = self.told_by_tools(f'{LEAF}; cat "$SAPWOOD_JOIN" {KEY_PATH}')
        for abi in self.each_mpi():
            path, points, key = self.join_file(0o700)
            # The program ends once both have written: a tool rank whose program has ended starts nothing.
            self.lines(abi, 2, [self.program(abi), os.path.join(self.folder, "file"), "0", *files], tools=2, **more,
                       SAPWOOD_JOIN=path, **BY_HOST)
            self.take_written({path: f"{tool} {tool}\n{points}{key}" for tool, path in enumerate(files)})

    def test_hosts_of_one_name_are_different_hosts_where_mpi_sees_no_shared_memory(self):
        told, files = self.told_by_tools(LEAF)
        boots = os.path.join(self.folder, "boot")
        for host in range(2):
            with open(f"{boots}-{host}", "w", encoding="ascii") as file:
                file.write(f"{host}\n")
        # Ranks 0 and 1 are on the one host, ranks 2 and 3 on the other.
        on_host = (f'SAPWOOD_TEST_BOOT_FILE={boots}-$((${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} / 2)); '
                   'export SAPWOOD_TEST_BOOT_FILE; exec "$@"')
        name = BY_HOST["SAPWOOD_MPI_WORLD_HOSTS"]
        for abi in self.each_mpi():
            path, _, _ = self.join_file(0o700)
            more = {**told, "SAPWOOD_JOIN": path, "SAPWOOD_MPI_WORLD_HOSTS": f"{name}\x1f{name}"}
            program = [self.program(abi), os.path.join(self.folder, "file"), "0", *files]
            command = ["/bin/sh", "-c", on_host, "sh", *program]
            behind = [self.program(abi, "own_host.so")]
            code, _, error = self.run_to_end(abi, 4, command, tools=1, behind=behind, **more)
            self.assertEqual(code, 0, error)
            # Each is the first of the tool's ranks of its host.
            self.take_written({path: f"{tool} 0\n" for tool, path in enumerate(files)})

    def test_a_join_file_that_others_may_have_put_there_is_not_read(self):
        # Another user may make a folder of that name on a host that has none.
        told = os.path.join(self.folder, "told")
        path, _, _ = self.join_file(0o755)
        more = {"SAPWOOD_MPI_WORLD_COMMAND": "\x1f".join(["/bin/touch", told]), "SAPWOOD_JOIN": path, **BY_HOST}
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "0"]
        code, _, error = self.run_to_end("openmpi", 4, command, tools=2, **more)
        self.assertEqual(code, 0, error)
        self.assertIn("no rank of the tool sees the folder", error)
        self.assertFalse(os.path.exists(told))

    def test_a_join_file_that_finds_no_room_is_said_and_the_program_runs_on(self):
        told = os.path.join(self.folder, "told")
        path, _, _ = self.join_file(0o700)
        with open(path, "a", encoding="ascii") as file:
            file.write("8 tcp:192.0.2.7:4001 2 on /key\n" * (1 << 16))
        more = {"SAPWOOD_MPI_WORLD_COMMAND": "\x1f".join(["/bin/touch", told]), "SAPWOOD_JOIN": path, **BY_HOST}
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "0"]
        code, _, error = self.run_to_end("openmpi", 4, command, tools=2, **more)
        self.assertEqual(code, 0, error)
        self.assertIn("or its key, cannot be read: File too large; the program runs on unobserved", error)
        self.assertFalse(os.path.exists(told))

    def test_a_tree_that_has_gone_before_it_stood_is_said_and_the_program_runs_on(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        end = os.path.join(self.folder, "end")
        more = {"SAPWOOD_MPI_WORLD_COMMAND": "/bin/true", "SAPWOOD_JOIN": os.path.join(folder, "join"), **BY_HOST}
        # The program waits for the last file, which is made once the tool's rank has given up.
        command = [self.program("openmpi"), os.path.join(self.folder, "file"), "0", end]
        running = self.start("openmpi", 3, command, tools=1, **more)
        deadline = threading.Timer(RUN_SECONDS_MAX, running.kill)
        deadline.start()
        try:
            for line in running.stdout:
                if line.startswith("no parent"):
                    break
            os.rmdir(folder)
            said = next((line for line in running.stderr if "the program runs on unobserved" in line), "")
        finally:
            with open(end, "w", encoding="ascii"):
                pass
            _, error = running.communicate(timeout=RUN_SECONDS_MAX)
            deadline.cancel()
        self.assertEqual(running.returncode, 0, error)
        # A rank that looks for the first time after that sees no folder.
        self.assertRegex(said, "cannot be read: No such file or directory|no rank of the tool sees the folder")

    def aborted(self, abi, ranks, command, **more):
        """What a job has said that has ended itself."""
        # MPICH's launcher may lose what a rank writes just before its MPI_Abort.
        said = os.path.join(tempfile.mkdtemp(dir=self.folder), "said")
        script = 'said=$1; shift; exec "$@" 2>>"$said"'
        code, _, _ = self.run_to_end(abi, ranks, ["/bin/sh", "-c", script, "sh", said, *command], **more)
        self.assertNotEqual(code, 0)
        # A launcher may end before ranks that it has killed, and these may write into the folder until then.
        self.until(lambda: not self.has_processes(said), "ranks live on without their launcher")
        with open(said, encoding="utf-8") as file:
            return file.read()

    def has_processes(self, path):
        """Whether a process holds this file open."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.path.realpath(f"/proc/{pid}/fd/2") == os.path.realpath(path):
                    return True
            except OSError:
                continue
        return False

    def test_hosts_with_too_few_ranks_or_with_none_are_said(self):
        host = BY_HOST["SAPWOOD_MPI_WORLD_HOSTS"]
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "0"]
            said = self.aborted(abi, 2, command, tools=2, **BY_HOST)
            self.assertIn(f"takes 2 of the ranks of each host, and host {host[:64]} has 2 in all", said)
            # The program's rank, which would end at once, is kept in MPI_Init until the tool's has looked.
            said = self.aborted(abi, 2, command, tools=1, SAPWOOD_MPI_WORLD_HOSTS=f"{host}\x1fidle.invalid")
            self.assertIn("the tree has leaves for 2 hosts, and the ranks run on 1", said)

    def test_too_few_ranks_and_a_wrong_number_are_said(self):
        for abi in self.each_mpi():
            command = [self.program(abi), os.path.join(self.folder, "file"), "0"]
            said = self.aborted(abi, 2, command, tools=2)
            self.assertIn("takes the last 2 ranks, and the program has 2 in all", said)
            code, out, error = self.run_to_end(abi, 2, command, tools="two")
            self.assertEqual((code, out.splitlines()[0]), (0, "rank: 0 1"), error)
            self.assertIn("'two' and names no number of ranks", error)

    def test_an_abort_of_the_program_ends_the_tool_ranks(self):
        # All have started and none has ended: Open MPI's launcher itself may crash or hang at an abort then.
        text = ("from mpi4py import MPI; world = MPI.COMM_WORLD; world.Barrier()\n"
                "world.Get_rank() or world.Abort(13)\nworld.Barrier()")
        command = [PYTHON, "-c", text]
        code, _, error = self.run_to_end("openmpi", 3, command, tools=1)
        self.assertEqual(code, 13, error)


load_tests = turns.load_tests

if __name__ == "__main__":
    unittest.main()

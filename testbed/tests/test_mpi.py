"""MPI programs on several hosts under `sapwood mpi`: every launcher, exact counts, and what is lost.

The front-end runs on node00 and the ranks, two on each host, on the next four. What each rank counted
by itself, and wrote to a file at its end, is the truth that the report is compared with.
"""

import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from stories import HERE, PROGRAM, Story, TESTBED, name, processes, testbed

ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("SAPWOOD_TARGET", os.path.join(ROOT, "target"))
BINDINGS = os.path.join(ROOT, "bindings", "mpi")
BUILD = os.path.basename(os.environ.get("SAPWOOD_BUILD", "release"))
SHIMS = os.path.join(TARGET, BUILD, "lib", "sapwood")
SLURM = TESTBED + "-slurm"
sys.path.insert(0, os.path.join(BINDINGS, "tests"))

from rank_profile import Profile, size_class  # noqa: E402  pylint: disable=wrong-import-position

HOSTS_USED = [name(index) for index in range(1, 5)]
SLOTS = ",".join(f"{host}:2" for host in HOSTS_USED)
PLACES = {host: f"{2 * number}-{2 * number + 1}" for number, host in enumerate(HOSTS_USED)}
VICTIM = HOSTS_USED[1]
ENVIRONMENT = ("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_mpi_yield_when_idle=1",
               f"SAPWOOD_LIB_DIR={SHIMS}")
# Long enough that the program is still running when it is harmed.
STEPS_LONG = "10000000"
# How long a program may take to end once nothing holds it up.
END_SECONDS_MAX = 90
MPIRUN = ("mpirun.openmpi", "-H", SLOTS)
# The allocation is srun's own.
SRUN = ("srun", "--mpi=pmix", "-w", ",".join(HOSTS_USED), "-N4", "--ntasks-per-node=2")

# MPICH 4.0.2 of Debian 12 hangs when it disconnects over TCP; without a monitor just as with one.
QUIET_END = "void *ucp_disconnect_nb(void *ep) { (void)ep; return 0; }\n"

# Melts as demo/in.melt does, for some time or some steps.
MELT = """
variable steps index 20
units lj
atom_style atomic
lattice fcc 0.85
region crystal block 0 6 0 6 0 6
create_box 1 crystal
create_atoms 1 box
mass 1 1.0
velocity all create 2.4 20260101 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0
fix motion all nve
thermo 10
thermo_modify flush yes
{end}
run ${{steps}}
"""


def read_profile(path):
    """What one rank wrote."""
    with open(path, "rb") as file:
        return Profile(file.read())


def ranks_of(text):
    """The numbers of ranges such as `0-1,4`."""
    ends = [part.split("-") for part in text.split(",")]
    return [rank for pair in ends for rank in range(int(pair[0]), int(pair[-1]) + 1)]


class Run:
    """A program that runs under the monitor on node00, with its report."""

    def __init__(self, story, *command, options=(), around=()):
        self.out = os.path.join(story.folder, "out")
        self.dumps = os.path.join(story.folder, "dumps")
        for folder in (self.out, self.dumps):
            shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(self.dumps)
        words = [*around, PROGRAM, "mpi", "--no-live", "--interval", "500ms", "--out", self.out, *options,
                 "--", *command]
        line = [SLURM, "exec", name(0), "env", *ENVIRONMENT, f"SAPWOOD_MPI_DUMP_DIR={self.dumps}", "sh", "-c",
                f'cd {story.folder}; exec "$@"', "front-end", *words]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL)
        story.begun.append(self.process)
        self.said, self.complaints = [], []
        self.readers = [self.reader(self.process.stdout, self.said), self.reader(self.process.stderr, self.complaints)]

    @staticmethod
    def reader(stream, lines):
        thread = threading.Thread(target=lambda: lines.extend(stream), daemon=True)
        thread.start()
        return thread

    def wait_for(self, story, what, lines):
        """Waits until the program, or the monitor, has written this."""
        def has_come():
            story.assertIsNone(self.process.poll(), f"it ended: {''.join(self.said + self.complaints)}")
            return any(re.search(what, line) for line in list(lines))
        story.wait_until(f"it does not write {what!r}: {''.join(self.complaints)}", has_come)

    def has_round_of_all(self):
        """Whether a round is there that no rank is missing in."""
        try:
            with open(os.path.join(self.out, "rounds.ndjson"), encoding="utf-8") as file:
                # The last line may not be whole yet.
                lines = file.read().split("\n")[:-1]
        except FileNotFoundError:
            return False
        return any(json.loads(line)["covered"] == "0-7" for line in lines)

    def end(self, story):
        """Waits for its end; gives its report and its exit code."""
        code = self.process.wait(timeout=END_SECONDS_MAX)
        for reader in self.readers:
            reader.join(timeout=END_SECONDS_MAX)
        text = "".join(self.complaints)
        path = os.path.join(self.out, "profile.json")
        story.assertTrue(os.path.exists(path), f"no report, exit code {code}: {''.join(self.said)}{text}")
        with open(path, encoding="utf-8") as file:
            return json.load(file), code, text


class MpiJobs(Story):
    """Programs on four hosts, two ranks on each."""

    @classmethod
    def setUpClass(cls):
        for kind in ("demo", "slurm"):
            requirements = os.path.join(os.path.dirname(TESTBED), "requirements")
            subprocess.run([requirements, kind], stdout=subprocess.DEVNULL, check=True)
        subprocess.run([SLURM, "up"], check=True)
        cls.quiet = processes()
        # A folder that all hosts see.
        cls.folder = tempfile.mkdtemp(prefix="sapwood-mpi-", dir="/var/tmp")
        os.chmod(cls.folder, 0o755)
        with open(cls.at("in.steps"), "w", encoding="utf-8") as file:
            file.write(MELT.format(end=""))
        with open(cls.at("in.timed"), "w", encoding="utf-8") as file:
            file.write(MELT.format(end="timer timeout 0:00:16 every 10"))
        with open(cls.at("quiet.c"), "w", encoding="utf-8") as file:
            file.write(QUIET_END)
        cls.build("gcc", "-shared", "-fPIC", "-o", cls.at("quiet.so"), cls.at("quiet.c"))
        for abi in ("openmpi", "mpich"):
            cls.build(f"mpicc.{abi}", "-w", "-I", os.path.join(BINDINGS, "region"), "-o", cls.at(f"solver.{abi}"),
                      os.path.join(BINDINGS, "tests", "solver.c"), "-L", SHIMS, "-lsapwood-region",
                      f"-Wl,-rpath,{SHIMS}")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)
        subprocess.run([SLURM, "down"], check=True)

    @classmethod
    def at(cls, file):
        return os.path.join(cls.folder, file)

    @staticmethod
    def build(*words):
        subprocess.run(words, check=True)

    def assert_all_counted(self, run, hosts=HOSTS_USED):
        """The report has every rank, on its host, and exactly the calls that the ranks counted."""
        report, code, text = run.end(self)
        self.assertEqual(code, 0, text)
        size = 2 * len(hosts)
        everyone = f"0-{size - 1}"
        self.assertEqual((report["world_size"], report["covered"]), (size, everyone), text)
        self.assertEqual(report["states"]["finalized"], everyone, text)
        self.assertEqual(report["missing"], [], text)
        ranks = {entry["host"]: entry["ranks"] for entry in report["hosts"]}
        self.assertEqual(ranks, {host: f"{2 * at}-{2 * at + 1}" for at, host in enumerate(hosts)}, text)
        profiles = [read_profile(path) for path in glob.glob(os.path.join(run.dumps, "rank-*.profile"))]
        self.assertEqual(sorted(profile.rank for profile in profiles), list(range(size)))
        for profile in profiles:
            self.assertEqual(profile.host, hosts[profile.rank // 2])
        expected = collections.Counter()
        for profile in profiles:
            for (function, _), (count, moved) in profile.calls.items():
                expected[function, "calls"] += count
                expected[function, "bytes"] += moved
            for region, count in profile.regions.items():
                expected[region, "calls"] += count
        self.assertGreater(expected["MPI_Allreduce", "calls"], size * size_class(size))
        counted = collections.Counter()
        for event in report["events"]:
            counted[event["name"], "calls"] += event["calls"]["sum"]
            counted[event["name"], "bytes"] += event["bytes"]["sum"]
        self.assertEqual(+counted, +expected)
        return text

    def harmed(self, launcher, harm, words=("lmp", "-in", "in.steps", "-var", "steps", STEPS_LONG, "-log", "none")):
        """A run of LAMMPS to which something happens while it steps."""
        run = Run(self, *launcher, *words)
        run.wait_for(self, r"^ *Step ", run.said)
        # The monitor knows after a round which ranks run where.
        self.wait_until("no round has all ranks", run.has_round_of_all)
        harm()
        return run

    def kill(self, pattern):
        """Kills a process of one host, by the name of its program."""
        testbed("exec", VICTIM, "sh", "-c", f"kill -9 $(pgrep {pattern} | tail -n 1)")

    def crash(self):
        self.has_crashed = True
        self.afterwards("boot", VICTIM)
        testbed("crash", VICTIM)

    def setUp(self):
        super().setUp()
        self.has_crashed = False

    def tearDown(self):
        super().tearDown()
        if self.has_crashed:
            # A host that is booted has no Slurm yet.
            subprocess.run([SLURM, "exec", VICTIM, "sh", "-c", 'exec slurmd -f "$SLURM_CONF"'], check=True)
            self.wait_until(f"Slurm has no {VICTIM}", self.is_idle)

    @staticmethod
    def is_idle():
        look = [SLURM, "exec", name(0), "sinfo", "--noheader", "--states=idle", "--format=%D", f"--nodes={VICTIM}"]
        return subprocess.run(look, capture_output=True, text=True, check=True).stdout.strip() == "1"

    def assert_rank_lost(self, run, code):
        report, ended, text = run.end(self)
        self.assertEqual(ended, code, text)
        self.assertEqual(report["covered"], "0-7", text)
        first = report["first_lost"]
        self.assertIsNotNone(first, text)
        self.assertEqual((first["host"], first["ranks"] in ("2", "3", PLACES[VICTIM])), (VICTIM, True), text)
        self.assertRegex(text, rf"lost first: ranks? [23](-3)? on host {VICTIM}")

    def assert_host_lost(self, run):
        report, code, text = run.end(self)
        self.assertNotIn(code, (0, 125), text)
        self.assertEqual(report["covered"], "0-1,4-7", text)
        self.assertEqual([loss["ranks"] for loss in report["missing"]], [PLACES[VICTIM]], text)
        self.assertIn(f"host {VICTIM}: ", report["missing"][0]["reason"])
        self.assertRegex(text, rf"LOST: {VICTIM} with ranks {PLACES[VICTIM]}: ")

    def assert_silence_told(self, launcher):
        """A host that is frozen for a while is named while it is, and the program ends as it would."""
        self.afterwards("thaw", VICTIM)
        run = self.harmed(launcher, lambda: testbed("freeze", VICTIM),
                          ("lmp", "-in", "in.timed", "-var", "steps", STEPS_LONG, "-log", "none"))
        run.wait_for(self, rf"host {VICTIM} .ranks {PLACES[VICTIM]}. does not answer", run.complaints)
        testbed("thaw", VICTIM)
        run.wait_for(self, rf"host {VICTIM} answers again", run.complaints)
        self.assert_all_counted(run)

    def test_lammps_over_ssh(self):
        self.assert_all_counted(Run(self, *MPIRUN, "-x", "SAPWOOD_MPI_DUMP_DIR", "lmp", "-in", "in.steps", "-log", "none"))

    def test_lammps_by_srun(self):
        text = self.assert_all_counted(Run(self, *SRUN, "lmp", "-in", "in.steps", "-log", "none"))
        self.assertNotIn("CANCELLED", text)

    def test_mpirun_in_an_allocation_has_ranks_on_its_own_host(self):
        hosts = [name(index) for index in range(4)]
        run = Run(self, "mpirun.openmpi", "-x", "SAPWOOD_MPI_DUMP_DIR", "./solver.openmpi",
                  around=("salloc", "--quiet", "-w", ",".join(hosts), "-N4", "--ntasks-per-node=2"))
        self.assert_all_counted(run, hosts)

    def test_mpirun_in_a_batch_job(self):
        script = self.at("batch")
        with open(script, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        run = Run(self, "mpirun.openmpi", "-x", "SAPWOOD_MPI_DUMP_DIR", "./solver.openmpi",
                  around=("sbatch", "--quiet", "--wait", "-w", ",".join(HOSTS_USED), "-N4", "--ntasks-per-node=2",
                          "-o", self.at("batch.output"), script))
        self.assert_all_counted(run)

    def test_hydra_over_ssh(self):
        preload = ("-genv", "LD_PRELOAD", self.at("quiet.so"))
        run = Run(self, "mpiexec.hydra", "-launcher", "ssh", "-iface", "eth0", *preload, "-hosts", ",".join(HOSTS_USED),
                  "-ppn", "2", "-n", "8", "./solver.mpich")
        self.assert_all_counted(run)

    def test_mpich_by_srun(self):
        words = [word.replace("pmix", "pmi2") for word in SRUN]
        export = f"--export=ALL,LD_PRELOAD={self.at('quiet.so')}"
        self.assert_all_counted(Run(self, *words, export, "./solver.mpich"))

    def test_ssh_one_rank_of_each_host_is_the_tools(self):
        hosts = [name(index) for index in range(3)]
        slots = ",".join(f"{host}:3" for host in hosts)
        run = Run(self, "mpirun.openmpi", "-H", slots, "-x", "SAPWOOD_MPI_DUMP_DIR", "./solver.openmpi",
                  options=("--in-world", "1/host"))
        self.assert_all_counted(run, hosts)

    def test_hydra_one_rank_of_each_host_is_the_tools(self):
        hosts = [name(index) for index in range(3)]
        preload = ("-genv", "LD_PRELOAD", self.at("quiet.so"))
        run = Run(self, "mpiexec.hydra", "-launcher", "ssh", "-iface", "eth0", *preload, "-hosts", ",".join(hosts),
                  "-ppn", "3", "-n", "9", "./solver.mpich", options=("--in-world", "1/host"))
        self.assert_all_counted(run, hosts)

    def test_two_ranks_of_each_host_are_the_tools_in_another_order_of_hosts(self):
        # The launcher's own host is not the first one; each host keeps the name that it has.
        hosts = [name(index) for index in (2, 0, 1)]
        slots = ",".join(f"{host}:4" for host in hosts)
        run = Run(self, "mpirun.openmpi", "-H", slots, "-np", "12", "--map-by", "node", "-x", "SAPWOOD_MPI_DUMP_DIR",
                  "./solver.openmpi", options=("--in-world", "2/host"))
        report, code, text = run.end(self)
        self.assertEqual((code, report["covered"], report["missing"]), (0, "0-5", []), text)
        self.assertEqual([entry["host"] for entry in report["hosts"]], hosts, text)
        profiles = [read_profile(path) for path in glob.glob(os.path.join(run.dumps, "rank-*.profile"))]
        self.assertEqual(sorted(profile.rank for profile in profiles), list(range(6)))
        for profile in profiles:
            [told] = [entry["ranks"] for entry in report["hosts"] if entry["host"] == profile.host]
            self.assertIn(profile.rank, ranks_of(told), text)

    def test_a_host_with_a_rank_of_the_tool_alone_is_refused(self):
        run = Run(self, "mpirun.openmpi", "-H", f"{name(0)}:2,{name(1)}:1", "./solver.openmpi",
                  options=("--in-world", "1/host"))
        code = run.process.wait(timeout=END_SECONDS_MAX)
        for reader in run.readers:
            reader.join(timeout=END_SECONDS_MAX)
        text = "".join(run.complaints)
        self.assertNotEqual(code, 0, text)
        self.assertIn(f"host {name(1)} has 1 in all", text)

    def test_a_host_that_cannot_be_watched_is_named_with_its_ranks(self):
        # The leaf's way in is closed, the launcher's is not.
        shell = self.at("shell")
        with open(shell, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncase "$*" in *{VICTIM}*) echo "no way in" >&2; exit 1;; esac\nexec ssh "$@"\n')
        os.chmod(shell, 0o755)
        run = Run(self, *MPIRUN, "./solver.openmpi", options=("--remote-shell", shell))
        report, code, text = run.end(self)
        self.assertEqual(code, 0, text)
        self.assertEqual(report["covered"], "0-1,4-7", text)
        self.assertEqual([loss["ranks"] for loss in report["missing"]], [PLACES[VICTIM]], text)
        self.assertRegex(report["missing"][0]["reason"], rf"{VICTIM}: .*no way in")
        self.assertRegex(text, rf"(?m)^sapwood: host {VICTIM} will not be watched: .*no way in")
        self.assertRegex(text, rf"NOT WATCHED: {VICTIM}: .*no way in")

    def test_ssh_a_rank_is_killed(self):
        self.assert_rank_lost(self.harmed(MPIRUN, lambda: self.kill("-x lmp")), 137)

    def test_ssh_a_daemon_is_killed(self):
        run = self.harmed(MPIRUN, lambda: self.kill("-x orted"))
        report, code, text = run.end(self)
        self.assertEqual(code, 205, text)
        self.assertEqual((report["covered"], report["states"]["lost"]), ("0-7", "0-7"), text)
        # All ends within milliseconds of each other; what can be distinguished is right.
        if report["first_lost"] is not None:
            self.assertEqual(report["first_lost"]["host"], VICTIM, text)

    def test_ssh_a_host_crashes(self):
        self.assert_host_lost(self.harmed(MPIRUN, self.crash))

    def test_ssh_a_host_is_frozen(self):
        self.assert_silence_told((*MPIRUN, "-x", "SAPWOOD_MPI_DUMP_DIR"))

    def test_srun_a_rank_is_killed(self):
        self.assert_rank_lost(self.harmed(SRUN, lambda: self.kill("-x lmp")), 137)

    def test_srun_a_host_is_frozen(self):
        self.assert_silence_told(SRUN)

    def test_srun_then_a_host_crashes(self):
        self.assert_host_lost(self.harmed(SRUN, self.crash))

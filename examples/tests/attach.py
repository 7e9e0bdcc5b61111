"""Trees over processes that another manager starts, as examples/attach shows them.

    attach.py NODE_PROGRAM FRONT_END FOLDER

NODE_PROGRAM is `sapwood-node`, which has `sapwood` beside it, FRONT_END examples/rust/attach.rs as it was built, and FOLDER holds ranks.openmpi and
ranks.mpich, examples/attach/ranks.c as each MPI builds it.
"""

import copy
import glob
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import manifest
from selection import run_tests

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "testbed"))

import surroundings

surroundings.keep_only(**surroundings.MPI, **surroundings.runtime_folder())

EXAMPLES = os.path.join(os.path.dirname(HERE), "attach")
SECONDS_MAX = 60

NODE_PROGRAM, PROGRAM, FRONT_END, FOLDER = "", "", "", ""
MPIEXEC = {
    "openmpi": "mpirun.openmpi --oversubscribe",
    "mpich": "mpiexec.hydra",
}
ENVIRONMENT = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"}


class Scene(unittest.TestCase):
    """A folder, and processes that end with the test."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sapwood-attach-")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.join = os.path.join(self.folder, "join")

    def begin(self, *words, **variables):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**ENVIRONMENT, **variables}, start_new_session=True, cwd=self.folder,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def ended(self, process):
        out, err = process.communicate(timeout=SECONDS_MAX)
        return process.returncode, out, err

    def agent(self, rank, **variables):
        """A process as a manager starts it, numbered by a variable of Kubernetes'."""
        return self.begin(NODE_PROGRAM, "agent", JOB_COMPLETION_INDEX=str(rank), **variables)

    def run_by_file(self, hosts, *words):
        return self.begin(PROGRAM, "run", "--join", self.join, "-n", "-b", "-w", hosts, *words)

    def assert_nothing_left(self):
        self.assertEqual(glob.glob(self.join + "*"), [])


class OtherManagers(Scene):
    """Real managers start real processes."""

    def test_a_command_beside_every_rank(self):
        for mpi, mpiexec in MPIEXEC.items():
            with self.subTest(mpi):
                script = os.path.join(EXAMPLES, "mpiexec.sh")
                process = self.begin(script, "3", "echo rank $SAPWOOD_RANK", MPIEXEC=mpiexec,
                                     SAPWOOD=PROGRAM, TMPDIR=self.folder)
                code, out, err = self.ended(process)
                self.assertEqual(code, 0, err)
                for rank in range(3):
                    self.assertIn(f"rank{rank}\n---------------\nrank {rank}", out.replace(" (1)", ""))
                self.assertEqual(os.listdir(self.folder), [], "the join file has gone")

    def test_the_ranks_of_an_mpi_program_answer(self):
        for mpi, mpiexec in MPIEXEC.items():
            with self.subTest(mpi):
                ranks = os.path.join(FOLDER, f"ranks.{mpi}")
                # The program comes first: it waits for the front-end.
                program = self.begin(*mpiexec.split(), "-n", "2", ranks, SAPWOOD_JOIN=self.join)
                front_end = self.begin(FRONT_END, "2", self.join, SAPWOOD_NODE=NODE_PROGRAM)
                code, out, err = self.ended(front_end)
                self.assertEqual((code, out), (0, "201 from ranks 0-1\n"), err)
                code, _, err = self.ended(program)
                self.assertEqual(code, 0, err)
                self.assert_nothing_left()


class Leaves(Scene):
    """What goes wrong with processes that come by themselves."""

    def test_who_does_not_come_is_named(self):
        front_end = self.begin(PROGRAM, "run", "--join", self.join, "--join-timeout", "1.5", "-n", "-b",
                               "-w", "pod[0-2]", "echo here")
        leaves = [self.agent(rank, SAPWOOD_JOIN=self.join) for rank in (0, 2)]
        code, out, err = self.ended(front_end)
        self.assertEqual(code, 255, err)
        self.assertIn("pod[0,2] (2)", out)
        self.assertRegex(err, "pod1 .*no process has attached under this rank within 1.5 s")
        for leaf in leaves:
            self.assertEqual(self.ended(leaf)[0], 0)
        self.assert_nothing_left()

    def test_the_files_are_the_users_alone(self):
        front_end = self.run_by_file("pod0", "true")
        self.wait_for_file(self.join)
        for path in (self.join, self.join + ".key"):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.agent(0, SAPWOOD_JOIN=self.join)
        self.assertEqual(self.ended(front_end)[0], 0)
        self.assert_nothing_left()

    def wait_for_file(self, path):
        until = time.monotonic() + SECONDS_MAX
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), until, f"{path} does not come")
            time.sleep(0.01)

    def test_a_key_is_good_for_one_tree(self):
        kept = os.path.join(self.folder, "kept")
        front_end = self.run_by_file("pod0", "true")
        self.wait_for_file(self.join)
        shutil.copy2(self.join + ".key", kept)
        self.agent(0, SAPWOOD_JOIN=self.join)
        self.assertEqual(self.ended(front_end)[0], 0)
        # The next tree, in the same place.
        front_end = self.run_by_file("pod0", "true")
        self.wait_for_file(self.join)
        with open(self.join, encoding="utf-8") as file:
            address = file.read().split()[1]
        code, _, err = self.ended(self.agent(0, SAPWOOD_JOIN=address, SAPWOOD_KEY=f"file:{kept}"))
        self.assertNotEqual(code, 0)
        self.assertIn("key", err)
        self.agent(0, SAPWOOD_JOIN=self.join)
        self.assertEqual(self.ended(front_end)[0], 0)

    def test_a_place_is_given_once(self):
        front_end = self.run_by_file("pod[0-1]", "true")
        first = self.agent(0, SAPWOOD_JOIN=self.join)
        second = self.agent(0, SAPWOOD_JOIN=self.join)
        until = time.monotonic() + SECONDS_MAX
        while first.poll() is None and second.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        loser = first if first.poll() is not None else second
        code, _, err = self.ended(loser)
        self.assertNotEqual(code, 0)
        self.assertIn("rank 0 has attached already", err)
        self.agent(1, SAPWOOD_JOIN=self.join)
        self.assertEqual(self.ended(front_end)[0], 0)

    def test_a_number_that_is_none_and_a_rank_that_is_not_reserved(self):
        leaf = self.begin(NODE_PROGRAM, "agent", SAPWOOD_JOIN=self.join, PMI_RANK="many")
        code, _, err = self.ended(leaf)
        self.assertIn("PMI_RANK holds 'many'", err)
        self.assertNotEqual(code, 0)
        self.run_by_file("pod0", "true")
        code, _, err = self.ended(self.agent(7, SAPWOOD_JOIN=self.join))
        self.assertNotEqual(code, 0)
        self.assertIn("no attach point reserves rank 7", err)

    def test_without_a_front_end_it_gives_up_in_time(self):
        leaf = self.agent(0, SAPWOOD_JOIN=self.join, SAPWOOD_JOIN_TIMEOUT="0.3")
        code, _, err = self.ended(leaf)
        self.assertNotEqual(code, 0)
        self.assertIn("join", err)

    def test_options_that_do_not_fit_are_refused(self):
        for words in (["--launcher", "attach"], ["--launcher", "ssh", "--join", "x"],
                      ["--join-port", "7077"], ["--join", "x", "-l", "root"]):
            code, _, err = self.ended(self.begin(PROGRAM, "run", *words, "-w", "a", "true"))
            self.assertEqual(code, 2, words)
            self.assertEqual(len(err.splitlines()), 1, err)

    def test_a_dry_run_names_what_the_manager_is_to_start(self):
        words = ["run", "--dry-run", "--join", self.join, "-w", "pod[0-3]", "true"]
        code, out, err = self.ended(self.begin(PROGRAM, *words))
        self.assertEqual(code, 0, err)
        for rank in range(4):
            self.assertIn(f"SAPWOOD_JOIN={self.join} SAPWOOD_RANK={rank} {NODE_PROGRAM} agent", out)
        self.assertFalse(os.path.exists(self.join))


class Manifest(Scene):
    """The manifest for Kubernetes, without Kubernetes."""

    def setUp(self):
        super().setUp()
        paths = (os.path.join(EXAMPLES, name) for name in ("jobset.yaml", "jobset.schema.json"))
        self.manifest, self.schema = manifest.read(*paths)

    def of(self, name):
        """The one container of a replicated job."""
        jobs = self.manifest["spec"]["replicatedJobs"]
        job = next(job for job in jobs if job["name"] == name)
        return job["template"]["spec"]["template"]["spec"]["containers"][0]

    def test_it_has_only_fields_that_there_are(self):
        self.assertEqual(manifest.faults(self.manifest, self.schema), [])

    def test_a_wrong_field_fails(self):
        def misname(spec):
            spec["successPolicies"] = spec.pop("successPolicy")

        def spoil(spec):
            spec["replicatedJobs"][1]["template"]["spec"]["completionMode"] = "indexed"

        def unquote(spec):
            env = spec["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["containers"][0]["env"]
            env[2]["value"] = 300

        def omit(spec):
            del spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]

        for change, what in ((misname, "successPolicies"), (spoil, "indexed"), (unquote, "300"),
                             (omit, "restartPolicy")):
            changed = copy.deepcopy(self.manifest)
            change(changed["spec"])
            found = manifest.faults(changed, self.schema)
            self.assertEqual(len(found), 1, found)
            self.assertIn(what, found[0])

    def test_what_its_containers_run_works_outside_of_them(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
        key = os.path.join(self.folder, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(os.urandom(32).hex())
        # Here the pods have no names, and the secret is in another folder.
        there = {"7077": port, "/run/sapwood/key": key, "sapwood": PROGRAM, "300": "30"}
        front_end = self.begin(*[there.get(word, word) for word in self.of("front")["command"]])
        values = {one["name"]: one["value"] for one in self.of("leaf")["env"]}
        values["SAPWOOD_JOIN"] = values["SAPWOOD_JOIN"].replace("sapwood-front-0-0.sapwood", "localhost")
        values["SAPWOOD_JOIN"] = values["SAPWOOD_JOIN"].replace("7077", port)
        values["SAPWOOD_KEY"] = f"file:{key}"
        leaves = [self.agent(rank, **values) for rank in range(4)]
        code, out, err = self.ended(front_end)
        self.assertEqual(code, 0, err)
        self.assertIn(f"leaf[0-3] (4)\n---------------\n{os.uname().release}", out)
        for leaf in leaves:
            self.assertEqual(self.ended(leaf)[0], 0)


if __name__ == "__main__":
    NODE_PROGRAM, FRONT_END, FOLDER = map(os.path.realpath, sys.argv[1:4])
    PROGRAM = NODE_PROGRAM.removesuffix("-node")
    run_tests([sys.argv[0], *sys.argv[4:]], verbosity=2)

"""Trees in allocations of Slurm."""

import json
import os
import subprocess
import time

from stories import (
    END_SECONDS_MAX, HOSTS, PROGRAM, STORY_SECONDS_MAX, Story, TESTBED, name, names, processes,
    testbed,
)


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
        self.wait_until("nothing starts", lambda: processes()[name(1)] > self.quiet[name(1)])
        began = time.monotonic()
        subprocess.run([self.SLURM, "exec", name(0), "scancel", number], check=True)
        said, complaints = process.communicate(timeout=STORY_SECONDS_MAX)
        print(f"    ended {time.monotonic() - began:.1f} s after it was cancelled, code {process.returncode}")
        self.assertEqual(process.returncode, 255, complaints)
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

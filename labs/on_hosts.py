"""What benchmarks on the test bed's hosts share: the hosts, commands on the log-in node, spreads, progress."""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TESTBED = os.path.join(HERE, "..", "testbed", "testbed")
REQUIREMENTS = os.path.join(HERE, "..", "testbed", "requirements")

# Longest time that one command may take.
SECONDS_MAX = 900

USAGE = 2
OWN_FAILURE = 125


def name(index):
    """A host's name."""
    return f"node{index:02d}"


def everybody(hosts):
    """The first hosts, this number of them, as a nodeset."""
    return f"node[00-{hosts - 1:02d}]" if hosts > 1 else name(0)


def login(*words):
    """Runs a command on the log-in node; what it wrote."""
    done = subprocess.run([TESTBED, "login", *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                          check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr[-300:].strip()}")
    return done.stdout


def spread(values):
    """Median and range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "runs": len(values)}


def ratios(own, others):
    """The spread of the ratios within a run."""
    return spread([one / other for one, other in zip(own, others, strict=True)])


def between(of, digits=2):
    """A spread's range, for people."""
    return f"[{of['min']:.{digits}f}, {of['max']:.{digits}f}]"


class Progress:
    """One line on a terminal that says what is being measured; nothing where there is none."""

    def __init__(self):
        self.is_shown = sys.stderr.isatty()

    def say(self, run, runs, what):
        """Writes the line anew."""
        if self.is_shown:
            print(f"\r\033[Krun {run + 1} of {runs}: {what}", end="", file=sys.stderr, flush=True)

    def clear(self):
        """Leaves the terminal as it was."""
        if self.is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def standing(hosts, processors=None):
    """This number of hosts with an ssh server each; with a share of the processors of their own, if one is given."""
    own = [] if processors is None else ["--processors", str(processors)]
    owned = ["--owner", str(os.getpid())]
    subprocess.run([TESTBED, "up", str(hosts), "--sshd", *owned, *own], check=True, stdout=sys.stderr)
    try:
        yield
    finally:
        subprocess.run([TESTBED, "down", *owned], check=True, stdout=sys.stderr)


@contextlib.contextmanager
def workplace(program):
    """A folder that all hosts see, and the command in it with sapwood-node, at a path that is the same for all."""
    with tempfile.TemporaryDirectory(prefix="sapwood-bench-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(program + "-node", os.path.join(folder, "sapwood-node"))
        yield folder, shutil.copy(program, os.path.join(folder, "sapwood"))


def log_in_seconds(processors):
    """How long a log-in may take: minutes, where each host has a small share of a processor."""
    return "60" if processors is None else "600"


def whose_processors(processors):
    """Whose processors the hosts compute on, for people."""
    if processors is None:
        return f"{os.cpu_count()} processors for all together"
    return f"{processors:g} processors for each alone"


def parser(description):
    """The options that all have."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("program", nargs="?", default=os.path.join(HERE, "../target/release/sapwood"))
    made.add_argument("--json", action="store_true")
    return made


def chosen(made, option, text, known):
    """Which of the known names an option lists."""
    names = text.split(",")
    for one in names:
        if one not in known:
            made.error(f"{option}: there is no '{one}'; there are {', '.join(known)}")
    return names


def main(requirements, arguments, measure):
    """Makes sure that the packages are there and measures; a failure is one line. Gives the exit code."""
    script = f"labs/{os.path.basename(sys.argv[0])}"
    if os.geteuid() != 0:
        print(f"{script}: needs root, to make hosts of network namespaces", file=sys.stderr)
        return USAGE
    if not os.access(arguments.program, os.X_OK):
        print(f"{script}: {arguments.program} is no program; build it with cargo build --release", file=sys.stderr)
        return USAGE
    subprocess.run([REQUIREMENTS, requirements], check=True, stdout=sys.stderr)
    try:
        measure(arguments)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{script}: {error}", file=sys.stderr)
        return OWN_FAILURE
    return 0

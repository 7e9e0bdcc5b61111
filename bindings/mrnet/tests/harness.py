"""Runs the programs of these tests: each to its end, within a deadline, and with nothing left running."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent.parent / "testbed"))

import surroundings

# What the Makefile and cargo are told, and they tell these tests.
surroundings.keep_only("BOOST", "CARGO_HOME", "CARGO_TARGET_DIR", "CC", "CXX", "OUT", "RUSTUP_HOME",
                       "SAPWOOD_LIBRARIES")

OUT = pathlib.Path(os.environ.get("OUT", HERE / "../../../target/mrnet")).resolve()

# A run that takes longer hangs, on a machine that others use, too.
RUN_SECONDS = 240
# How long processes of a tree may take to end after their front-end.
END_SECONDS = 30

# The number of processes on each level, and the fan-outs that make them.
TOPOLOGIES = {
    "1x1": "b:1",
    "1x4": "b:4",
    "1x16": "b:16",
    "1x1x2": "b:1x2",
    "1x2x4": "b:2x2",
    "1x1x1x1": "b:1x1x1",
    "1x4x16": "b:4x4",
}
BACK_ENDS = ["back_end", "light_back_end", "light_back_end_r"]


def program(name):
    """A test program; an absolute path stays what it is."""
    return str(OUT / "tests" / name)


def topology(folder, spec):
    """A topology file on this machine, made by mrnet_topgen."""
    path = str(pathlib.Path(folder) / (spec.replace(":", "-") + ".top"))
    command = [str(OUT / "bin/mrnet_topgen"), "-t", spec, "-o", path]
    subprocess.run(command, input="localhost:1024\n", text=True, check=True, timeout=RUN_SECONDS)
    return path


def left_of(mark):
    """Processes that carry a mark in their environment."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def run(name, *arguments, environment=None):
    """Runs a program; gives its exit code, what it printed and its errors. Nothing is left of it."""
    mark = f"MRNET_TEST_RUN={uuid.uuid4()}"
    key, value = mark.split("=")
    with tempfile.TemporaryDirectory() as runtime:
        os.chmod(runtime, 0o700)
        variables = {**os.environ, "XDG_RUNTIME_DIR": runtime, key: value, **(environment or {})}
        command = [program(name), *map(str, arguments)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=RUN_SECONDS,
                              stdin=subprocess.DEVNULL, check=False)
        until = time.monotonic() + END_SECONDS
        while (left := left_of(mark)) and time.monotonic() < until:
            time.sleep(0.05)
        files = [str(path) for path in pathlib.Path(runtime).rglob("*") if not path.is_dir()]
    assert not left, f"{command}: still running: {left}"
    assert not files, f"{command}: files are left: {files}"
    return done.returncode, done.stdout, done.stderr

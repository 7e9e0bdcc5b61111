#!/usr/bin/env python3
"""Runs the commands of the guide's tour, and compares what they print with what the page shows.

    tour.py PROGRAM

PROGRAM is the command `sapwood`, with `sapwood-node` beside it. A command is a line of code that begins with `$`, the
lines of code up to the next command are what it prints: standard output, then standard error. Times, rates and shares
may be others than those of the page, and so may the name of the host. A process has another number than on the page: a
later command that has the page's number gets the one that was printed in its place, and is not run where none was: the
number may be that of a process of another program. Needs no network and no root; the commands that begin with another
word than `sapwood` or `kill` are not run.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from shown import conclude, shown_commands

TOUR = Path(__file__).resolve().parent.parent / "docs" / "guide" / "tour.md"
FIRST_WORDS = ("sapwood", "kill")
# Seconds that a command may take.
LIMIT = 60
NUMBER = re.compile(r"\b\d{2,}\b")
# What differs from run to run, by what stands in its place.
MEASURED = re.compile(r"(?<= pid )(?P<pid>\d+)|(?P<rate>[\d.,]+ \w+/s)|(?P<time>[\d.,]+ (?:ns|us|ms|s)\b)|"
                      r"(?P<share>[\d.,]+ %)|(?P<host>\bvm\b)")
ANY = {"pid": r"(\d+)", "rate": r"[\d.,]+ \w+/s", "time": r"[\d.,]+ (?:ns|us|ms|s)", "share": r"[\d.,]+ %",
       "host": r"[\w.-]+"}


def in_one_form(line):
    """A line whose columns may be of other widths."""
    return re.sub(r" {2,}", "  ", line.rstrip())


def pattern_of(line):
    """What a line of the page stands for, and the numbers of processes that it has."""
    pattern, at, processes = "", 0, []
    for found in MEASURED.finditer(line):
        kind = found.lastgroup
        if kind == "pid":
            processes.append(found[0])
        pattern += re.escape(line[at:found.start()]) + ANY[kind]
        at = found.end()
    return re.compile(pattern + re.escape(line[at:])), processes


class Tour:
    """A user with a folder for running trees, and what the processes of the page are called here."""

    def __init__(self, program, folder, of_page, limit=LIMIT):
        self.of_page = of_page
        self.limit = limit
        self.processes = {}
        path = f"{program.parent}:{os.environ.get('PATH', os.defpath)}"
        self.environment = {"PATH": path, "HOME": folder, "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": folder}

    def unknown_in(self, command):
        """The numbers of processes in a command in whose place no other has been printed: of `kill` all its words that
        are numbers, though the page may not show them."""
        numbers = [number for number in NUMBER.findall(command) if number in self.of_page]
        if command.split()[0] == "kill":
            numbers.extend(filter(str.isdigit, command.split()))
        return sorted(set(numbers) - self.processes.keys())

    def printed_by(self, command):
        """The lines that a command prints; none if it has not ended in time."""
        own = NUMBER.sub(lambda found: self.processes.get(found[0], found[0]), command)
        # What it has started is of the same group. A tree that stays up has left it.
        begun = subprocess.Popen(["sh", "-c", own], env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        with begun:
            try:
                output, errors = begun.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if begun.returncode is None:
                    os.killpg(begun.pid, signal.SIGKILL)
        return (output + errors).splitlines()

    def faults_of(self, command, expected):
        """The lines in which what a command prints differs from the page."""
        if unknown := self.unknown_in(command):
            return [f"'{command}' is not run: nothing was printed in the place of process {', '.join(unknown)}"]
        printed = self.printed_by(command)
        if printed is None:
            return [f"'{command}' has not ended after {self.limit} s, and was killed"]
        faults = []
        for line, came in zip(expected, printed):
            pattern, processes = pattern_of(in_one_form(line))
            matched = pattern.fullmatch(in_one_form(came))
            if matched is None:
                faults.append(f"the page has '{line}', it printed '{came}'")
            else:
                self.processes.update(zip(processes, matched.groups()))
        faults.extend(f"the page has '{line}', it printed no more" for line in expected[len(printed):])
        faults.extend(f"it also printed '{line}'" for line in printed[len(expected):])
        return faults


def check_refusals(folder):
    """Raises if a command would run that has a process of the page for which there is none here."""
    tour = Tour(Path(folder, "sapwood"), folder, {"13622"})
    file = Path(folder, "has-run")
    for command in (f"touch {file}; echo 13622", f"kill -0 13623 ; touch {file}"):
        if len(tour.faults_of(command, [])) != 1 or file.exists():
            raise AssertionError(f"it would run '{command}'")
    tour.processes["13622"] = "13624"
    if tour.faults_of("echo 13622", ["13624"]):
        raise AssertionError("a known process is not put in the place of the page's")


def check_limit(folder):
    """Raises if a command is waited for that does not end, or if that is no fault."""
    hasty = Tour(Path(folder, "sapwood"), folder, set(), limit=0.1)
    faults = hasty.faults_of("echo begun; sleep 1000; echo ended", ["begun"])
    if len(faults) != 1 or "has not ended after 0.1 s" not in faults[0]:
        raise AssertionError(f"a command that does not end leads to {faults}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    count, faults = 0, []
    page = [shown for shown in shown_commands(TOUR.read_text("utf-8")) if shown.is_prompted]
    of_page = {process for shown in page for line in shown.printed for process in pattern_of(line)[1]}
    with tempfile.TemporaryDirectory(prefix="sapwood-tour-") as folder:
        check_refusals(folder)
        check_limit(folder)
        tour = Tour(Path(sys.argv[1]).resolve(), folder, of_page)
        try:
            for shown in page:
                if shown.text.split()[0] in FIRST_WORDS:
                    count += 1
                    found = tour.faults_of(shown.text, shown.printed)
                    faults.extend(f"{TOUR.name}:{shown.line}: {fault}" for fault in found)
        finally:
            # Where a command failed, the tree of the page may be left.
            if tour.printed_by("sapwood down --all") is None:
                faults.append(f"{TOUR.name}: trees may be left: 'sapwood down --all' has not ended after {LIMIT} s")
    conclude(faults, f"{count} commands of the tour, {len(faults)} differences", count)


if __name__ == "__main__":
    main()

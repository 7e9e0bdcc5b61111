#!/usr/bin/env python3
"""Runs the commands of README.md as a user of an installed Sapwood would.

    readme.py                    says what is wrong with readme.toml beside README.md, and exits with 1 if something is
    readme.py --run [NEED...]    runs, in this folder, the commands that need these and nothing else

A command of the page is a line of code, or a piece of code within a sentence that begins with a program's name. A piece
that only begins another command of the page is a mention of that one. Options in the table of the MPI engineer are
commands, too: `sapwood mpi OPTION mpirun ...`. Each command is run as it is, in the page's order, unless an entry of
readme.toml says what stands in the place of some words, what is run around it, or why it is not run. Exit code 0 of its
shell is right.
Needs Python 3.11.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = "readme.toml"
PROGRAM = re.compile(r"(sapwood|make|cargo|pip|man)$|(labs|packaging|testbed)/[\w/-]+$")
VARIABLES = re.compile(r"^(?:[A-Z_]+=\S* )*")
OPTIONS_TABLE = "| to | run | page |"
# Seconds that a command may take.
LIMIT = 120
# Lines of a command's output that are shown when it has failed.
LAST_LINES = 40


class Wrong(Exception):
    """An entry that cannot be read."""


@dataclass
class Entry:
    """What readme.toml says of a command; of all commands that begin so if the text ends in ` *`."""

    text: str
    # Why it is not run; empty if it is.
    reason: str = ""
    # What stands here in the place of some of its words.
    put: dict = field(default_factory=dict)
    # The shell's text with the command in it.
    run: str = "{command}"
    # What its output has, as a regular expression; empty for anything.
    prints: str = ""
    # What must be installed beside the programs.
    needs: list = field(default_factory=list)

    def matches(self, command):
        """Whether this entry is that of a command."""
        return command.startswith(self.text[:-1]) if self.text.endswith(" *") else command == self.text


@dataclass
class Plan:
    """What readme.toml has."""

    prepare: str
    helpers: str
    put: dict
    # How blocks of code begin that are no commands.
    outputs: list
    entries: list

    def entry_of(self, command):
        """The entry of a command, or none."""
        return next((entry for entry in self.entries if entry.matches(command)), None)


@dataclass
class Page:
    """The code of README.md."""

    # Each command once, in the page's order.
    commands: list
    # The first line of each block that is taken for output.
    outputs: list


@dataclass
class Step:
    """A command as it is run here."""

    command: str
    script: str
    prints: str
    needs: set


def read_plan(text):
    """The plan of a readme.toml."""
    try:
        content = tomllib.loads(text)
        entries = [Entry(**entry) for entry in content.pop("command")]
        outputs = [output["begins"] for output in content.pop("output")]
        return Plan(outputs=outputs, entries=entries, **content)
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise Wrong(f"{LIST}: {error}") from None


def without_comment(line):
    """A line of code without its comment."""
    return re.sub(r"\s+# .*$", "", line).strip()


def parts_of(page):
    """The blocks of shell code and the paragraphs of a page, each as its kind and its lines."""
    kind, lines, fence = "text", [], None
    for line in [*page.splitlines(), ""]:
        if fence is not None and not line.startswith("```"):
            if fence in ("sh", "console"):
                lines.append(line.removeprefix("$ "))
            continue
        begins_code = line.startswith("    ") and (kind == "code" or not lines)
        if line.startswith("```") or not line or begins_code != (kind == "code"):
            if lines:
                yield kind, lines
            lines = []
        if line.startswith("```"):
            fence = line[3:].strip() if fence is None else None
            kind = "code" if fence else "text"
        elif line:
            kind = "code" if begins_code else "text"
            lines.append(line)
        else:
            kind = "text"


def in_sentences(lines):
    """The pieces of code of a paragraph that are commands."""
    is_options = lines[0].strip() == OPTIONS_TABLE
    for piece in re.findall(r"`([^`]+)`", " ".join(lines)):
        if PROGRAM.match(VARIABLES.sub("", piece).split(" ")[0]):
            yield piece
        elif is_options and piece.startswith("--"):
            yield f"sapwood mpi {piece} mpirun ..."


def read_page(text, plan):
    """The commands of a page, and the blocks that are output."""
    found, mentions, outputs = [], set(), []
    for kind, lines in parts_of(text):
        if kind == "text":
            pieces = list(in_sentences(lines))
            mentions.update(pieces)
            found.extend(pieces)
        elif any(lines[0].strip().startswith(begin) for begin in plan.outputs):
            outputs.append(lines[0].strip())
        else:
            joined = "\n".join(lines).replace("\\\n", "").splitlines()
            commands = [re.sub(r" {2,}", " ", without_comment(line)) for line in joined]
            found.extend(filter(None, commands))
            mentions.difference_update(commands)
    commands = list(dict.fromkeys(found))

    def is_mention(command):
        begins = any(other.startswith(command + " ") for other in commands)
        return command in mentions and begins and plan.entry_of(command) is None
    return Page([command for command in commands if not is_mention(command)], outputs)


def step_of(command, plan):
    """A command as it is run here; none if it is excepted."""
    entry = plan.entry_of(command) or Entry(command)
    if entry.reason:
        return None
    text = command
    for words, others in [*plan.put.items(), *entry.put.items()]:
        text = text.replace(words, others)
    needs = set(entry.needs) | ({"mpi"} if "mpirun" in command else set())
    return Step(command, f"{plan.helpers}\n{entry.run.replace('{command}', text)}", entry.prints, needs)


def faults_of(page, plan):
    """One line for each thing that is wrong with a plan beside a page."""
    for begin in plan.outputs:
        if not any(line.startswith(begin) for line in page.outputs):
            yield f"{LIST}: no block of code begins with '{begin}': take the output away"
    for entry in plan.entries:
        commands = [command for command in page.commands if plan.entry_of(command) is entry]
        if not commands:
            yield f"{LIST}: README.md has no '{entry.text}': take the entry away"
        if entry.reason and entry != Entry(entry.text, entry.reason):
            yield f"{LIST}: '{entry.text}' is not run, and has more than a reason"
        for words in entry.put:
            if commands and not any(words in command for command in commands):
                yield f"{LIST}: '{entry.text}' has no '{words}' for which others could be put"
    for words in plan.put:
        if not any(words in command for command in page.commands):
            yield f"{LIST}: no command of README.md has '{words}'"
    for command in page.commands:
        step = step_of(command, plan)
        if step and plan.entry_of(command) is None and not PROGRAM.match(VARIABLES.sub("", command).split(" ")[0]):
            yield f"README.md: '{command}' begins with no program that {LIST} knows: add it there, as command or output"
        if step and "..." in step.script.removeprefix(plan.helpers):
            yield f"README.md: nothing stands for '...' in '{command}': add it to {LIST}, to be run or with a reason"


def shell(script):
    """Runs a script; gives what is wrong with its end, if anything, and what it has printed."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        # What it leaves in the background may hold its output: a file has no end to wait for.
        begun = subprocess.Popen(["sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                 start_new_session=True)
        try:
            code = begun.wait(LIMIT)
            fault = f"exit code {code}" if code else None
        except subprocess.TimeoutExpired:
            fault = f"still running after {LIMIT} s"
        if fault:
            # What it has started would be found by the next command.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()
        output.seek(0)
        return fault, output.read()


def run_step(step):
    """Runs a command; gives the lines that tell what is wrong."""
    fault, printed = shell(step.script)
    if fault is None and step.prints and not re.search(step.prints, printed, re.M):
        fault = f"its output has no '{step.prints}'"
    if fault is None:
        return []
    return [f"'{step.command}': {fault}", *(f"    {line}" for line in printed.splitlines()[-LAST_LINES:])]


def run_all(page, plan, needs):
    """Runs the commands that need just these; the exit code."""
    steps = [step_of(command, plan) for command in page.commands]
    chosen = [step for step in steps if step and step.needs == needs]
    fault, printed = shell(f"{plan.helpers}\n{plan.prepare}")
    if fault or not chosen:
        print(f"readme.py: {f'the preparation failed: {fault}' if fault else 'there is no such command'}\n{printed}")
        return 1
    count = 0
    for step in chosen:
        faults = run_step(step)
        count += bool(faults)
        # At once: all may end by a limit of time.
        for line in faults:
            print(line, flush=True)
    beside = f" that need {', '.join(sorted(needs))}" if needs else ""
    print(f"README.md: {len(chosen)} commands run{beside}, {count} failed")
    return 1 if count else 0


SAMPLE_PAGE = """
    sapwood one -a    # comment
    sapwood two \\
        -b

A sentence with `sapwood one`, `sapwood three ...` and `make all`.

    a   table

    other
"""
SAMPLE_PLAN = """
prepare = ""
helpers = ""
put = { "-b" = "-c" }
output = [{ begins = "a  " }, { begins = "gone" }]
command = [{ text = "make *", reason = "x" }, { text = "sapwood four", reason = "x" }]
"""


def try_out():
    """Raises unless each fault is seen."""
    plan = read_plan(SAMPLE_PLAN)
    page = read_page(SAMPLE_PAGE, plan)
    if page.commands != ["sapwood one -a", "sapwood two -b", "sapwood three ...", "make all", "other"]:
        raise AssertionError(f"the page's commands are read as {page.commands}")
    if step_of("sapwood two -b", plan).script.strip() != "sapwood two -c" or step_of("make all", plan) is not None:
        raise AssertionError("a command is not run as its entry says")
    faults = list(faults_of(page, plan))
    if [re.findall("'(.*?)'", fault)[0] for fault in faults] != ["gone", "sapwood four", "...", "other"]:
        raise AssertionError(f"the faults of a plan are {faults}")
    if not run_step(Step("x", "exit 3", "", set())) or not run_step(Step("x", "echo a", "^b$", set())):
        raise AssertionError("a command that fails is taken for right")
    if run_step(Step("x", "echo a; echo b >&2", "^b$", set())):
        raise AssertionError("a command that is right is taken for wrong")


def main(words):
    if words and words[0] != "--run":
        print(f"readme.py: unknown argument '{words[0]}': expected --run or nothing", file=sys.stderr)
        return 2
    try_out()
    # In a folder where both lie beside this program, or in the repository.
    place = HERE if (HERE / "README.md").exists() else HERE.parent
    try:
        plan = read_plan((HERE / LIST).read_text("utf-8"))
    except Wrong as wrong:
        print(wrong)
        return 1
    page = read_page((place / "README.md").read_text("utf-8"), plan)
    faults = list(faults_of(page, plan))
    if faults or not words:
        excepted = sum(step_of(command, plan) is None for command in page.commands)
        count = len(page.commands)
        summary = f"README.md: {count - excepted} commands are run, {excepted} have a reason not to be"
        print("\n".join(faults) or summary)
        return 1 if faults else 0
    return run_all(page, plan, set(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

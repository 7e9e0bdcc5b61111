#!/usr/bin/env python3
"""Runs the commands that the pages for users show, each page in a folder of its own.

    shown_commands.py PROGRAM LIBRARIES [PAGE...]

PROGRAM is the command `sapwood`, with the programs of its further commands beside it, LIBRARIES the folder of the MPI
shims. PAGE, such as docs/run.md, runs only these pages. A command is a line of code behind `$`, or one that begins with
one of the `programs` of shown_commands.toml. That file also has what a page needs beside it, which words of a command
are others here, and which commands cannot run here, with the reason. A command that does not end as it should, whose
output lacks a line that the page shows, or that is neither run nor excepted is a fault, and so is an entry of that file
to which no command belongs. Hosts are processes of this machine (the local launcher). Needs no network and no root.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import shown_form
from page_folder import PageFolder
from shown import shown_commands
from tour import FIRST_WORDS as WORDS_OF_TOUR
from tour import TOUR

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".toml")
PAGES = ["README.md", "docs/*.md", "docs/guide/*.md"]
# Seconds that a command may take.
LIMIT = 240
COMPILER = "mpicc"
# What a command that begins so prints is in the remark behind it, to the letter.
SAID_BEHIND = "sapwood nodeset "


class Entries:
    """The entries of one kind in the table, and which of them no command has used."""

    def __init__(self, kind, entries):
        self.kind = kind
        self.entries = entries
        self.unused = list(entries)

    def of(self, page, text):
        """The entry of a command: the longest of those whose words it begins with."""
        found = [one for one in self.entries if one["page"] == page and text.startswith(one["starts"])]
        if not found:
            return None
        longest = max(found, key=lambda one: len(one["starts"]))
        if longest in self.unused:
            self.unused.remove(longest)
        return longest

    def faults(self, pages):
        return [f"{TABLE.name}: no command of {one['page']} begins with the words of {self.kind} '{one['starts']}'"
                for one in self.unused if one["page"] in pages]


class Table:
    """What shown_commands.toml says."""

    def __init__(self, path):
        table = tomllib.loads(path.read_text("utf-8"))
        self.programs = table["programs"]
        self.others = table["not_for_users"]
        self.files = table["files"]
        self.compiled = table["compiled"]
        self.pages = table["pages"]
        self.runs = Entries("run", table["run"])
        self.exceptions = Entries("exception", table["exception"])
        for one in table["exception"]:
            if not one["reason"]:
                raise AssertionError(f"an exception of {one['page']} has no reason")

    def faults(self, pages):
        """Its entries that stand for nothing."""
        faults = [*self.runs.faults(pages), *self.exceptions.faults(pages)]
        named = [*self.others, *self.pages]
        faults.extend(f"{TABLE.name}: there is no page {name}" for name in named if not (ROOT / name).is_file())
        for name in {*self.pages} & {*pages}:
            text = (ROOT / name).read_text("utf-8")
            faults.extend(f"{TABLE.name}: {name} has no '{old}', which is to be replaced"
                          for old in self.pages[name].get("replace", {}) if old not in text)
        faults.extend(f"{TABLE.name}: there is no test {one['test']}" for one in self.exceptions.entries
                      if "test" in one and not (ROOT / one["test"]).is_file())
        return faults


class Programs:
    """What is compiled for the pages, and what their commands find."""

    def __init__(self, table, program, libraries, folder):
        self.program = program
        self.libraries = libraries
        self.folder = Path(folder)
        for name, words in table.compiled.items():
            words = [word.format(root=ROOT, libraries=libraries) for word in words]
            done = subprocess.run([COMPILER, *words, "-o", self.folder / name], capture_output=True, text=True,
                                  timeout=LIMIT)
            if done.returncode != 0:
                raise AssertionError(f"'{name}' of {TABLE.name} cannot be compiled: {done.stderr}")

    def put_into(self, folder, table):
        """The files that a page's commands name."""
        for name in table.compiled:
            (folder / name).symlink_to(self.folder / name)
        for name, file in table.files.items():
            text = (ROOT / file["from"]).read_text("utf-8") if "from" in file else file["text"]
            for old, new in file.get("replace", {}).items():
                if old not in text:
                    raise AssertionError(f"{file['from']} has no '{old}', which {TABLE.name} replaces")
                text = text.replace(old, new)
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, "utf-8")
            (folder / name).chmod(0o755 if text.startswith("#!") else 0o600)


def lines_shown(shown, entry):
    """The lines that a command prints by its page: those of its block, or with `next` those of the blocks below."""
    if "unlike" in entry:
        return []
    if shown.text.startswith(SAID_BEHIND) and " # " in shown.text:
        return [shown.text.rpartition(" # ")[2]]
    return shown.printed if entry.get("next") else shown.printed[:shown.in_block]


class Page:
    """A page whose commands are run, in its order."""

    def __init__(self, name, table, programs, folder):
        self.table = table
        self.name = name
        self.setting = table.pages.get(name, {})
        self.replaced = {old: new.format(libraries=programs.libraries, root=ROOT)
                         for old, new in self.setting.get("replace", {}).items()}
        self.folder = PageFolder(folder, programs.program, programs.libraries, LIMIT)
        programs.put_into(self.folder.work, table)

    def begin(self, entry):
        """Runs what the page's commands, or one of them, need beside them; gives what is wrong, if anything."""
        for beside in entry.get("beside", []):
            if fault := self.act(beside["command"], beside, []):
                return f"'{beside['command']}', which its commands need: {fault}"
        return None

    def own(self, text, entry):
        """A command of the page, or a line that it shows, as it is here."""
        for replaced in (entry.get("replace", {}), self.replaced):
            for old, new in replaced.items():
                text = text.replace(old, new)
        return text

    def act(self, text, entry, shown):
        """Runs one command; gives what is wrong, if anything."""
        for old in entry.get("replace", {}):
            if old not in text:
                return f"'{text}' has no '{old}', which {TABLE.name} replaces"
        own = self.own(text, entry)
        run = self.folder.run(own, entry.get("until"), entry.get("when"), entry.get("stays", False))
        told = f"'{own}' printed:\n    " + "\n    ".join(run.printed[-30:])
        if run.fault:
            return f"{run.fault}: {told}"
        if run.status is not None and run.status != entry.get("status", 0):
            return f"it ends with exit code {run.status}: {told}"
        for old, pattern in entry.get("learns", {}).items():
            found = re.search(pattern, "\n".join(run.printed))
            if found is None:
                return f"nothing stands for '{old}': {told}"
            self.replaced[old] = found[1]
        if text.startswith(SAID_BEHIND):
            missing = [line for line in shown if line not in run.printed]
        else:
            missing = shown_form.missing_from(run.printed, [self.own(line, {}) for line in shown])
        if missing:
            return "it lacks:\n    " + "\n    ".join(missing) + f"\n  {told}"
        return None

    def run(self, commands):
        """The faults of those commands that can be run here."""
        faults = []
        try:
            if fault := self.begin(self.setting):
                faults.append(f"{self.name}: {fault}")
                commands = []
            for shown in commands:
                entry = self.table.runs.of(self.name, shown.text) or {}
                kept = len(self.folder.staying)
                fault = self.begin(entry) or self.act(shown.text, entry, lines_shown(shown, entry))
                if fault:
                    faults.append(f"{self.name}:{shown.line}: {fault}")
                if "beside" in entry:
                    self.folder.interrupt(kept)
        finally:
            faults.extend(f"{self.name}: {fault}" for fault in self.folder.end())
        return faults


class Count:
    """How many commands are run, excepted, or left to another test."""

    def __init__(self):
        self.run = self.excepted = self.elsewhere = 0

    def __str__(self):
        return f"{self.run} run, {self.excepted} excepted, {self.elsewhere} of other tests"


def is_of_tour(page, shown):
    """Whether tour.py runs a command."""
    return page == TOUR and shown.is_prompted and shown.text.split()[0] in WORDS_OF_TOUR


def check_table(table):
    """Raises if a command would be taken for another, or an entry without a command would not be noticed."""
    entries = Entries("run", [{"page": "a", "starts": words} for words in ("x", "x y", "z")])
    if entries.of("a", "x y z")["starts"] != "x y" or entries.of("b", "x") or len(entries.faults(["a"])) != 2:
        raise AssertionError("an entry of the table is not that of its command")
    text = "    $ one\n    made\n\ntext\n\n    two 3\n    2\n\n```sh\nfour\n# five\n```\n"
    found = [(shown.text, shown.in_block) for shown in shown_commands(text, ["two"])]
    if found != [("one", 1), ("two 3", 1), ("four", 0)]:
        raise AssertionError(f"the commands of a page are taken for {found}")
    if shown_commands(text, ["two"])[0].printed != ["made"]:
        raise AssertionError("what a command prints is not found")


def run_page(path, table, programs, total):
    """Runs the commands of one page, and says how many; gives their faults."""
    name, count, to_run = str(path.relative_to(ROOT)), Count(), []
    for shown in shown_commands(path.read_text("utf-8"), table.programs):
        if is_of_tour(path, shown):
            count.elsewhere += 1
        elif exception := table.exceptions.of(name, shown.text):
            count.elsewhere += "test" in exception
            count.excepted += "test" not in exception
        else:
            count.run += 1
            to_run.append(shown)
    faults, began = [], time.monotonic()
    if to_run:
        with tempfile.TemporaryDirectory(prefix="sw-page-", ignore_cleanup_errors=True) as folder:
            faults = Page(name, table, programs, Path(folder)).run(to_run)
    for part in ("run", "excepted", "elsewhere"):
        setattr(total, part, getattr(total, part) + getattr(count, part))
    if count.run or count.excepted or count.elsewhere:
        print(f"{name}: {count}, {len(faults)} faults, {time.monotonic() - began:.1f} s", flush=True)
    return faults


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1].strip())
    # What a shell runs in the background ignores Ctrl-C, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # So that what pages have begun is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    table, total, faults = Table(TABLE), Count(), []
    check_table(table)
    shown_form.check()
    pages = sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    pages = [path for path in pages if str(path.relative_to(ROOT)) not in table.others]
    if len(sys.argv) > 3:
        pages = [path for path in pages if str(path.relative_to(ROOT)) in sys.argv[3:]]
    program, libraries = (Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="sw-built-") as folder:
        programs = Programs(table, program, libraries, folder)
        for path in pages:
            for fault in run_page(path, table, programs, total):
                print(fault, file=sys.stderr, flush=True)
                faults.append(fault)
    for fault in table.faults([str(path.relative_to(ROOT)) for path in pages]):
        print(fault, file=sys.stderr)
        faults.append(fault)
    print(f"commands of pages: {total}, {len(faults)} faults")
    sys.exit(1 if faults or not total.run else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks that the commands that pages show exist, with all options that they have there, and the messages they quote.

    pages.py PROGRAM

PROGRAM is the command `sapwood`, with the programs of its further commands (sapwood-bench, sapwood-sim) beside it. A
command of a page is a line of code that begins with `sapwood`, or a piece of code within a sentence that does. What
its words mean is read from the help of that command: its sub-commands, its options, and which of them take a value.
Options behind the first word of a program that the command starts are that program's. messages.py looks for the
messages of docs/troubleshooting.md in the sources.
"""

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import messages
from shown import conclude, shown_commands

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/*.md", "docs/guide/*.md", "testbed/*.md", "bindings/*/README.md"]
OURS = re.compile(r"(?:[A-Z_]+=\S+ )*sapwood ")
INLINE = re.compile(r"`(sapwood [^`]+)`")
# Descriptions stand further to the right.
OPTION = re.compile(r"^(?:  (-\w)(?:, | |$)| {6}(?=--))(--[\w-]+)?(?:[ =]?(<[^>]+>|\[[^\]]+\]))?")
ALIASES = re.compile(r"\[(?:short )?alias(?:es)?: ([^\]]+)\]")
LIMIT = 60


class Help:
    """What a command's help says."""

    def __init__(self, text):
        self.commands = set()
        # Each option with whether the next word is its value.
        self.options = {"--help": False, "-h": False, "--version": False, "-V": False}
        # The names of each option.
        self.named = []
        part, last = "", []
        for line in text.splitlines():
            if line and not line.startswith(" "):
                part = line.rstrip(":")
                continue
            # `sapwood mpi` names two of its commands behind its options.
            further = re.match(r"^  sapwood mpi ([a-z]+)  ", line)
            if part == "Commands" and (found := re.match(r"^  ([a-z][\w-]*)", line)):
                self.commands.add(found[1])
            elif further:
                self.commands.add(further[1])
            elif part != "Commands" and line.lstrip().startswith("-") and (found := OPTION.match(line)):
                last = [name for name in found.groups()[:2] if name]
                self.named.append(last)
                takes_value = found[3] is not None and found[3].startswith("<")
                self.options.update(dict.fromkeys(last, takes_value))
            if last and (found := ALIASES.search(line)):
                aliases = [name.strip() for name in found[1].split(",")]
                self.options.update(dict.fromkeys(aliases, self.options[last[0]]))
                last.extend(aliases)
        usage = re.search(r"^Usage: (.*(?:\n {4,}.*)*)$", text, re.M)
        # Behind the first of these words all options are of another program.
        self.is_open = usage is not None and re.search(r"(COMMAND|PROGRAM)[>\]]*\.\.\.", usage[1]) is not None
        self.needs_command = usage is not None and usage[1].endswith("<COMMAND>") and "\n" not in usage[1]


@cache
def help_of(program, *words):
    """The help of a command, or none where there is no such command."""
    asked = subprocess.run([program, *words, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=LIMIT)
    return Help(asked.stdout) if asked.returncode == 0 else None


def commands_of(text):
    """The commands of a page, each with the number of its line: those in code, then those within sentences."""
    for shown in shown_commands(text):
        if OURS.match(shown.text):
            yield shown.line, shown.text
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("    "):
            for found in INLINE.finditer(line):
                yield number, found[1]


def words_of(command):
    """The words of a command up to a comment or a pipe; none where it is no command of a shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None
    end = next((at for at, word in enumerate(words) if set(word) <= set("|&;<>()")), len(words))
    return [word for word in words[:end] if not re.match(r"^[A-Z_]+=", word)]


def split(word):
    """An option with its value apart, as names: a word of several short options is all of them."""
    if word.startswith("--"):
        name, has_value, _ = word.partition("=")
        return [name], bool(has_value)
    return [f"-{letter}" for letter in word[1:]], False


def read_command(program, words):
    """What is wrong with a command, if anything, with its sub-command and the options that it has before."""
    path, rest, used = [], words[1:], []
    known = help_of(program)
    while rest and not rest[0].startswith("-"):
        deeper = rest[0] in known.commands or (not path and re.match(r"^[a-z][a-z-]*$", rest[0]))
        if not deeper:
            break
        path.append(rest.pop(0))
        known = help_of(program, *path)
        if known is None:
            return f"there is no 'sapwood {' '.join(path)}'", tuple(path), used
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-" or re.match(r"^-\d", word):
            if known.commands and known.needs_command:
                return f"there is no 'sapwood {' '.join([*path, word])}'", tuple(path), used
            if known.is_open:
                break
            continue
        names, has_value = split(word)
        for at, name in enumerate(names):
            if name not in known.options:
                return f"'sapwood {' '.join(path)}' has no option {name}", tuple(path), used
            used.append(name)
            if known.options[name]:
                # The rest of a word of short options is the value of the first that takes one.
                if at + 1 == len(names) and not has_value and rest:
                    rest.pop(0)
                break
    return None, tuple(path), used


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    program = str(Path(sys.argv[1]).resolve())
    count, faults = 0, []
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        for number, command in commands_of(page.read_text("utf-8")):
            words = words_of(command)
            # Such as `sapwood ...`, or `sapwood NAME`.
            if not words or len(words) < 2 or not re.match(r"^[a-z-]", words[1]):
                continue
            count += 1
            if fault := read_command(program, words)[0]:
                faults.append(f"{page.relative_to(ROOT)}:{number}: {fault}: {command}")
    quoted, unknown = messages.faults()
    in_messages = f"{quoted} messages, {len(unknown)} with a fault"
    summary = f"{count} commands in pages, {len(faults)} with a fault; {in_messages}"
    conclude([*faults, *unknown], summary, min(count, quoted))


if __name__ == "__main__":
    main()

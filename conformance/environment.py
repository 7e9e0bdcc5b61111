#!/usr/bin/env python3
"""Compares the variables that the programs read with those that docs/environment.md has.

A variable of the programs is a whole string literal `"SAPWOOD_..."` in a source file that is no test, example
or generator. A variable of the page is the first cell of a row of a table. Either without the other is a
fault. `check.py` runs this; alone it exits with 1 if there is a fault.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/environment.md"
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".py", ".rs"}
# Folders of what users do not run.
OTHERS = {"build", "examples", "generate", "target", "tests"}
LITERAL = re.compile(r'"(SAPWOOD_[A-Z0-9_]+)"')
# Set while the software itself is built or tested.
BUILD = {"SAPWOOD_COMPILER", "SAPWOOD_SEED", "SAPWOOD_TESTS_BUILT", "SAPWOOD_VERSION", "SAPWOOD_WRITE_HEADER"}


def variables_read(root):
    """The variables in the sources, each with a file that has it."""
    found = {}
    for part in ("crates", "tools", "bindings", "labs/bench"):
        for path in sorted((root / part).rglob("*")):
            inside = path.relative_to(root)
            if path.suffix in SUFFIXES and not OTHERS & set(inside.parts) and path.is_file():
                for name in LITERAL.findall(path.read_text("utf-8", "replace")):
                    found.setdefault(name, inside)
    return {name: path for name, path in found.items() if name not in BUILD}


def variables_described(text):
    """The variables in the first cells of the page's tables."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`(SAPWOOD_[A-Z0-9_]+)`", cell)}


def faults(read, described):
    """One line for each variable that only one side has."""
    lines = [f"{read[name]}: {name} is not in {PAGE}" for name in sorted(read.keys() - described)]
    return lines + [f"{PAGE}: no program reads {name}" for name in sorted(described - read.keys())]


def check(root=ROOT):
    """The faults of the repository; raises if a page with two faults would pass."""
    sample = variables_described("| `SAPWOOD_OLD` | x |\n| other | `SAPWOOD_NEW` |\n")
    if len(faults({"SAPWOOD_NEW": "a.rs"}, sample)) != 2:
        raise AssertionError("the check does not see a variable that one side lacks")
    return faults(variables_read(root), variables_described((root / PAGE).read_text("utf-8")))


if __name__ == "__main__":
    wrong = check()
    print("\n".join(wrong) or f"environment: {PAGE} has every variable")
    sys.exit(1 if wrong else 0)

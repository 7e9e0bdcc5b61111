#!/usr/bin/env python3
"""Makes the tables of docs/environment.md from the definitions of variables beside the code.

    python3 conformance/environment.py            says what is wrong, and exits with 1 if something is
    python3 conformance/environment.py --write    writes the tables

A definition is an entry of an `environment.toml`, beside the code that reads the variable: the table of the page
that it belongs to, and one value for each other column. `{NAME}` in a value is the number of that constant in the
same folder. Whole string literals `"SAPWOOD_..."` in source files that are no test, example or generator need a
definition, and a definition needs such a literal in its folder. All outside of the tables is written by hand.
Needs Python 3.11.
"""

import re
import sys
import tomllib
from dataclasses import dataclass
from math import prod
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/environment.md"
DEFINITIONS = "environment.toml"
PARTS = ("crates", "tools", "bindings", "labs/bench")
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".py", ".rs"}
# Folders of what users do not run.
OTHERS = {"build", "examples", "generate", "target", "tests"}
LITERAL = re.compile(r'"(SAPWOOD_[A-Z0-9_]+)"')
# Set while the software itself is built or tested.
BUILD = {"SAPWOOD_COMPILER", "SAPWOOD_SEED", "SAPWOOD_TESTS_BUILT", "SAPWOOD_VERSION", "SAPWOOD_WRITE_HEADER"}
TABLE = re.compile(r"(<!-- table: ([a-z -]+) -->\n)(.*?)(<!-- end of table -->)", re.S)


class Wrong(Exception):
    """A definition of which no row can be made."""


@dataclass
class Definition:
    """A variable, as an entry of a file describes it."""

    name: str
    file: Path
    table: str
    # The heading of each further column, with the cell below it.
    cells: dict


def read_sources(root):
    """The text of each source file that programs are made of, by its path from the root."""
    found = {}
    for part in PARTS:
        for path in sorted((root / part).rglob("*")):
            inside = path.relative_to(root)
            if path.suffix in SUFFIXES and not OTHERS & set(inside.parts) and path.is_file():
                found[inside] = path.read_text("utf-8", "replace")
    return found


def read_definitions(root):
    """All definitions, in the order of the variables' names."""
    files = sorted(path for part in PARTS for path in (root / part).rglob(DEFINITIONS))
    found = []
    for path in files:
        inside = path.relative_to(root)
        if OTHERS & set(inside.parts):
            continue
        try:
            entries = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Wrong(f"{inside}: {error}") from None
        for name, columns in entries.items():
            if not isinstance(columns, dict) or not all(isinstance(cell, str) for cell in columns.values()):
                raise Wrong(f"{inside}: {name} is no entry of strings: write [{name}], and a line for each column")
            if "table" not in columns:
                raise Wrong(f"{inside}: {name} has no table: name one of {PAGE}")
            if any(set(cell) & {"|", "\n"} for cell in columns.values()):
                raise Wrong(f"{inside}: {name} has a bar or a line's end in a value, which would end the cell")
            cells = {key.replace("_", " "): cell for key, cell in columns.items() if key != "table"}
            found.append(Definition(name, inside, columns["table"], cells))
    return sorted(found, key=lambda definition: definition.name)


def below(folder, sources):
    """The texts of the sources in a folder."""
    return [text for path, text in sources.items() if path.is_relative_to(folder)]


def constant(name, definition, sources):
    """The number of a constant: `= 32,`, `: u32 = 64 << 20;`, `#define NAME 32`."""
    written = re.compile(rf"\b{name}(?:: \w+)? (?:= )?([0-9][0-9_]*(?: \* [0-9][0-9_]*)*(?: << [0-9]+)?) ?[,;}}\n]")
    numbers = {number for text in below(definition.file.parent, sources) for number in written.findall(text)}
    if len(numbers) != 1:
        where = f"{definition.file}: {definition.name}"
        raise Wrong(f"{where}: the constant {name} has {len(numbers)} values in that folder, not one")
    factors, _, shift = numbers.pop().partition("<<")
    return str(prod(int(factor) for factor in factors.split("*")) << int(shift or 0))


def row(definition, sources):
    """The line of the page."""
    def number(found):
        return constant(found[1], definition, sources)
    cells = [re.sub(r"\{([A-Z0-9_]+)\}", number, cell) for cell in definition.cells.values()]
    return " | ".join([f"| `{definition.name}`", *cells]) + " |\n"


def table(name, definitions, sources):
    """The lines of a table of the page."""
    rows = [definition for definition in definitions if definition.table == name]
    if not rows:
        raise Wrong(f"{PAGE}: no {DEFINITIONS} has a variable of the table '{name}'")
    columns = list(rows[0].cells)
    for definition, after in zip(rows, [*rows[1:], None]):
        if list(definition.cells) != columns:
            expected = ", ".join(columns)
            raise Wrong(f"{definition.file}: {definition.name} has other columns than {rows[0].name}: {expected}")
        if after and after.name == definition.name:
            raise Wrong(f"{after.file}: {after.name} is defined in {definition.file}, too")
    heading = f"| variable | {' | '.join(columns)} |\n" + "|---" * (len(columns) + 1) + "|\n"
    return f"\n{heading}{''.join(row(definition, sources) for definition in rows)}\n"


def page_of(text, definitions, sources):
    """The page with its tables as they should be."""
    names = [found[2] for found in TABLE.finditer(text)]
    if len(names) != text.count("<!-- table:"):
        raise Wrong(f"{PAGE}: a table has no end, or a name with more than small letters, blanks and hyphens")
    missing = {definition.table for definition in definitions} - set(names)
    if missing:
        raise Wrong(f"{PAGE} has no table '{min(missing)}'")
    return TABLE.sub(lambda found: found[1] + table(found[2], definitions, sources) + found[4], text)


def lacking(definitions, sources):
    """One line for each variable without a definition, and for each definition without a variable."""
    defined = {definition.name for definition in definitions} | BUILD
    for path, text in sources.items():
        for name in sorted(set(LITERAL.findall(text)) - defined):
            yield f"{path}: {name} is in no {DEFINITIONS}: define it in the one of this folder"
    for definition in definitions:
        if not any(f'"{definition.name}"' in text for text in below(definition.file.parent, sources)):
            yield f"{definition.file}: no source in that folder reads {definition.name}"


def try_out():
    """Raises unless the check sees what it is for."""
    sources = {Path("a/new.c"): 'getenv("SAPWOOD_NEW"); enum { SIZE = 4 << 10 };'}
    old = Definition("SAPWOOD_OLD", Path("a/environment.toml"), "x", {"values": "to {SIZE}"})
    if len(list(lacking([old], sources))) != 2:
        raise AssertionError("the check does not see a variable that one side lacks")
    if row(old, {Path("a/old.h"): "enum { SIZE = 4 << 10, };"}) != "| `SAPWOOD_OLD` | to 4096 |\n":
        raise AssertionError("a row is not what its definition says")


def main(words):
    if words not in ([], ["--write"]):
        print(f"environment: unknown argument '{' '.join(words)}': expected --write or nothing", file=sys.stderr)
        return 2
    try_out()
    path = ROOT / PAGE
    sources, text = read_sources(ROOT), path.read_text("utf-8")
    try:
        definitions = read_definitions(ROOT)
        faults = list(lacking(definitions, sources))
        page = page_of(text, definitions, sources)
    except Wrong as wrong:
        print(wrong)
        return 1
    if words:
        path.write_text(page, "utf-8")
    elif page != text:
        faults.append(f"{PAGE} is not what the definitions make: run python3 conformance/environment.py --write")
    print("\n".join(faults) or f"environment: {PAGE} has all {len(definitions)} definitions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

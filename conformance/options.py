#!/usr/bin/env python3
"""Checks that some test uses each option of each command, so that none is accepted without an effect unseen.

    options.py PROGRAM

PROGRAM is the command `sapwood`, with the programs of SIBLINGS beside it. Commands and options are those of their
help. A test uses an option if the option, by any of its names, and all words of the command are in its strings, in
those of the functions, classes and tables that it names, or, for words of the command, in the path of its file. A
command of a page for users is a test, too, unless shown_commands.toml excepts it. An option without a test is a fault,
unless options.toml lists it with a reason. So is an entry there without an option that needs it.
"""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import shown_commands
from pages import commands_of, help_of, read_command, words_of
from shown import conclude

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".toml")
# Programs of their own that are called as commands of `sapwood`.
SIBLINGS = ["bench", "node", "sim", "soak", "stacks", "storm"]
# Folders whose tests are looked at. What a test names is looked for in its own folder.
RUST = ["tools/*/tests", "tools/*/src", "labs/*/tests", "labs/*/src", "crates/*/tests", "bindings/*/tests"]
PYTHON = ["bindings/*/tests", "bindings/mpi/world/tests", "examples/tests", "testbed/tests", "conformance"]
SCRIPTS = ["testbed/storm", "packaging/readme.toml", "packaging/version", "xtask/src/gate.rs"]
PYTHON_LINE = "#!/usr/bin/env python3"
SHARED_BY_ALL = {"--help", "--version"}

RUST_ITEM = re.compile(r"^( *)(?:pub(?:\([\w: ]+\))? )?(?:const |static |async |unsafe )*(?:fn )?(\w+)[(<:]")
RUST_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
RUST_COMMENT = re.compile(r"^\s*//.*$", re.M)
SEPARATORS = re.compile(r"[\s'\"`,;()\[\]{}|&<>=]+")


@dataclass
class Piece:
    """A function, class or table of a file of tests."""

    name: str
    is_test: bool
    # The words of its strings.
    words: set = field(default_factory=set)
    # The names in it.
    names: set = field(default_factory=set)


def split(text):
    """The words of a string, in which blanks or a shell's signs part them; a program's name is also a command's."""
    return {*SEPARATORS.split(text.replace("\\n", " ")), *text.split(), *re.findall(r"sapwood-(\w+)", text)}


def rust_pieces(text):
    """The functions and tables of a Rust file: each up to the next that is not deeper."""
    lines = RUST_COMMENT.sub("", text).splitlines()
    begins = [(number, found) for number, line in enumerate(lines)
              if (found := RUST_ITEM.match(line)) and re.search(r"\b(fn|const|static)\b", line)]
    for at, (number, found) in enumerate(begins):
        depth = len(found[1])
        ends = (other for other, later in begins[at + 1:] if len(later[1]) <= depth)
        block = "\n".join(lines[number:next(ends, len(lines))])
        is_test = any("#[test]" in line for line in lines[max(0, number - 3):number])
        words = set().union(*(split(string) for string in RUST_STRING.findall(block)))
        yield Piece(found[2], is_test, words, set(re.findall(r"\w+", RUST_STRING.sub("", block))))


def python_pieces(text):
    """The functions, classes and tables of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign):
            name = getattr(node.targets[0], "id", "")
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        notes = {id(below.value) for below in ast.walk(node) if isinstance(below, ast.Expr)}
        own = {below.id for below in ast.walk(node) if isinstance(below, ast.Name) and isinstance(below.ctx, ast.Store)}
        # A program that is a test as a whole has no other functions that are.
        piece = Piece(name, name.startswith("test") or name == "main")
        for below in ast.walk(node):
            if isinstance(below, ast.Constant) and isinstance(below.value, str) and id(below) not in notes:
                piece.words |= split(below.value)
            piece.names |= {getattr(below, "id", None), getattr(below, "attr", None)} - own
        yield piece


def tests_in(folder):
    """The words of each test below a folder, with the file: its own, and those of all that it names."""
    files, everywhere = {}, defaultdict(list)
    for path in sorted(folder.rglob("*")):
        text = path.read_text("utf-8") if path.is_file() and path.suffix in ("", ".rs", ".py") else ""
        kind = ".py" if text.startswith(PYTHON_LINE) else path.suffix
        pieces_of = {".rs": rust_pieces, ".py": python_pieces}.get(kind)
        if pieces_of and text and path.name != Path(__file__).name:
            # Of what is no folder of tests only its own tests.
            is_source = "src" in path.relative_to(ROOT).parts and path.stem != "tests"
            text = text.partition("#[cfg(test)]")[2] if is_source else text
            files[path] = list(pieces_of(text))
            for piece in files[path]:
                everywhere[piece.name].append(piece)
    for path, pieces in files.items():
        here = defaultdict(list)
        for piece in pieces:
            here[piece.name].append(piece)
        for test in (piece for piece in pieces if piece.is_test):
            known, to_follow, words = set(), [test], set()
            while to_follow:
                piece = to_follow.pop()
                words |= piece.words
                for name in piece.names - known:
                    known.add(name)
                    only = everywhere[name] if len(everywhere.get(name, [])) == 1 else []
                    to_follow.extend(here.get(name) or only)
            yield path, words


def all_tests():
    """The words of each test, and those of the path of its file."""
    folders = {folder for pattern in {*RUST, *PYTHON} for folder in ROOT.glob(pattern)}
    for folder in sorted(folders):
        for path, words in tests_in(folder):
            yield words, set(re.split(r"\W|_", str(path.relative_to(ROOT))))
    for name in SCRIPTS:
        text = re.sub(r"\\\n", " ", (ROOT / name).read_text("utf-8"))
        for line in text.splitlines():
            yield split(line), set(re.split(r"\W", name))


def used_in_pages(program):
    """The options of commands of pages that are run, with their commands."""
    table = shown_commands.Table(shown_commands.TABLE)
    for path in sorted(path for pattern in shown_commands.PAGES for path in ROOT.glob(pattern)):
        name = str(path.relative_to(ROOT))
        for _, command in commands_of(path.read_text("utf-8")) if name not in table.others else ():
            words = words_of(command)
            if words and len(words) > 1 and not table.exceptions.of(name, command):
                _, below, used = read_command(program, words)
                yield from ((below, option) for option in used)


def all_options(program):
    """Each command with each of its options, as all of the names that it has."""
    to_visit = [()]
    while to_visit:
        path = to_visit.pop()
        known = help_of(program, *path)
        if known is None:
            raise AssertionError(f"'sapwood {' '.join(path)} --help' fails")
        below = known.commands | set(SIBLINGS if not path else ())
        to_visit.extend((*path, name) for name in sorted(below - {"help"}))
        for names in known.named:
            if not SHARED_BY_ALL & set(names):
                yield path, names


def without_test(program):
    """How many options there are, and those that no test uses, as command and option."""
    tests = list(all_tests())
    used = set(used_in_pages(program))
    count, missing = 0, []
    for path, names in all_options(program):
        count += 1
        command, forms = set(path), set(names)
        is_used = any((path, name) in used for name in names) or any(
            forms & words and command <= words | places for words, places in tests)
        if not is_used:
            long = next((name for name in names if name.startswith("--")), names[0])
            missing.append((" ".join(["sapwood", *path]), long))
    return count, missing


def check_pieces():
    """Raises if a test is not seen with what it names, or what is no test is taken for one."""
    rust = '/// --no\nconst ALL: &str = "--in";\n#[test]\nfn it_is() {\n    run(&["a", ALL]);\n}\n\nfn not() {}\n'
    found = {piece.name: piece for piece in rust_pieces(rust)}
    if found["it_is"].words != {"a"} or "ALL" not in found["it_is"].names or found["ALL"].words != {"--in"}:
        raise AssertionError(f"a test in Rust is taken for {found}")
    python = 'def test_it():\n    """With --no."""\n    run("a --in=3")  # --no\n'
    words = next(python_pieces(python)).words
    if not {"a", "--in"} <= words or "--no" in words or found["not"].is_test:
        raise AssertionError(f"a test in Python has the words {words}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    check_pieces()
    exceptions = tomllib.loads(TABLE.read_text("utf-8")).get("exception", [])
    count, missing = without_test(str(Path(sys.argv[1]).resolve()))
    excepted = {(one["command"], option) for one in exceptions for option in one["options"]}
    faults = [f"{TABLE.name}: an exception of {one['command']} has no reason"
              for one in exceptions if not one["reason"]]
    faults += [f"{' '.join(one)}: no test uses it" for one in missing if one not in excepted]
    faults += [f"{TABLE.name}: a test uses {command} {option}, or there is no such option"
               for command, option in sorted(excepted - set(missing))]
    conclude(faults, f"{count} options, {len(missing)} without a test, {len(faults)} faults", count)


if __name__ == "__main__":
    main()

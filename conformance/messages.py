"""Whether the messages that docs/troubleshooting.md quotes are in the sources.

A message is code within a first column of that page's tables, or a line of code that begins with `sapwood: `. `...`, a
number, a path, a word of capitals and what is quoted in it stand for anything. It may be put together of several texts
of the sources: what is between two of these marks, or a mark and a colon, is looked for, and is of one text.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "troubleshooting.md"
SOURCES = ("crates/*/src/**/*.rs", "tools/*/src/**/*.rs", "bindings/*/src/**/*.rs", "bindings/mpi/**/*.[ch]")
# Messages of other programs and of the system, which the commands pass on.
OF_OTHERS = (
    "ssh: Could not resolve hostname: ...", "ssh: connect to port 22: Connection timed out", "... No route to host",
    "... Connection refused", "Permission denied (publickey,...)", "Host key verification failed.",
    "Connection timed out during banner exchange", "... File too large",
)
CODE = re.compile(r"`([^`]+)`")
# Heads of the first columns whose code is a message.
HEADS = ("REASON", "message", "reason", "error of a call")
# A text of a source, in one line or several.
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
# What is put into a text when it is printed.
PUT_IN = re.compile(r"\{[^{}]*\}|%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j|t)?[diouxXscpfgeG]")
PLACE = "\0"
# What stands for anything in a message of the page; `the host` stands in a reason for a name that was told before.
ANY = re.compile(r"\S*\.\.\.\S*|(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|(?<!\S)/\S+|\b\d[\d,.-]*\b|\b[A-Z_]{4,}\b|"
                 r"\bthe host\b|: ")
QUOTED = re.compile(r"(?<!\w)'([^']*)'(?!\w)")
# Texts behind this are those of a module of tests.
TESTS = "#[cfg(test)]\nmod tests {"


def texts_of(source):
    """The texts of a source, with a mark where something is put in."""
    source = source.partition(TESTS)[0]
    # Texts of C stand beside each other, also with a macro of the printing of numbers between them.
    source = re.sub(r'(?<!\\)"\s*(?:PRI\w+\s*)?\n?\s*"', "", source)
    for found in LITERAL.finditer(source):
        text = re.sub(r"\\\n\s*", "", found[1])
        text = text.replace('\\"', '"').replace("\\n", " ").replace("{{", "{").replace("}}", "}")
        yield re.sub(r"\s+", " ", PUT_IN.sub(PLACE, text))


@cache
def all_texts():
    """The texts of all sources, a line for each."""
    files = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern) if "tests" not in path.parts)
    return "\n".join(text for path in files for text in texts_of(path.read_text("utf-8", "replace")))


def parts_of(message):
    """The words of a message between what stands for anything."""
    parts = (part.strip(" :;,.()'\"") for part in ANY.split(message))
    parts = [part for part in parts if len(part) >= 4 and re.search("[a-z]{3}", part)]
    # Where there is nothing else, what is quoted.
    return parts or QUOTED.findall(message)


def is_in(texts, part):
    """Whether words of a message are in a text, whose own marks may stand for some of them."""
    if part in texts:
        return True
    words = part.split(" ")
    # A noun that is put before the rest is a text of its own.
    if len(words) > 2 and f"\n{words[0]}\n" in texts and part.removeprefix(f"{words[0]} ") in texts:
        return True
    # Or it is made: `hosts` of a number and `host`.
    for at in range(len(words)):
        for end in range(at + 1, min(at + 4, len(words) + 1)):
            if len(words) - (end - at) >= 2:
                given = " ".join([*words[:at], PLACE, *words[end:]]).strip(" ")
                if given in texts:
                    return True
    clauses = part.split(", ")
    return len(clauses) > 1 and all(" " in clause and is_in(texts, clause) for clause in clauses)


def messages_of(page):
    """The messages of the page, each with the number of its line."""
    head = ""
    lines = page.splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("    sapwood: "):
            yield number, line.strip().removeprefix("sapwood: ")
        elif line.startswith("|"):
            column = re.split(r"(?<!\\)\|", line)[1].strip()
            if number < len(lines) and lines[number].startswith("|---"):
                head = column
            elif head in HEADS:
                for found in CODE.finditer(column):
                    yield number, found[1]


def faults_of(page, texts):
    """How many messages a page has, and what is wrong with them."""
    count, faults, unused = 0, [], list(OF_OTHERS)
    for number, message in messages_of(page):
        count += 1
        if message in OF_OTHERS:
            if message in unused:
                unused.remove(message)
            continue
        parts = parts_of(message)
        faults.extend(f"{PAGE.name}:{number}: no source has '{part}', of the message '{message}'"
                      for part in parts if not is_in(texts, part))
        if not parts:
            faults.append(f"{PAGE.name}:{number}: '{message}' has no words to look for")
    faults.extend(f"{PAGE.name} has no message '{message}', which {Path(__file__).name} excepts" for message in unused)
    return count, faults


def check():
    """Raises if a message is found that no source has, or one is not found that a source has."""
    source = 'say("the tree of {} has ended; \\\n        start {name} anew");\nsay("no " "%d" PRIu64 "ranks are left")'
    texts = "\n".join(texts_of(source))
    for message in ("the tree of ... has ended; start 'x' anew", "... has ended; start NAME anew", "ranks are left"):
        if not all(is_in(texts, part) for part in parts_of(message)):
            raise AssertionError(f"it does not find '{message}' in {texts!r}")
    for message in ("the tree of ... was ended", "ranks are right"):
        if all(is_in(texts, part) for part in parts_of(message)):
            raise AssertionError(f"it finds '{message}' in {texts!r}")


def faults():
    """How many messages the page quotes, and those that no source has."""
    check()
    return faults_of(PAGE.read_text("utf-8"), all_texts())

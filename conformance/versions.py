#!/usr/bin/env python3
"""Checks that pages name the versions that the code has: of the wire format, of groups, of packets between releases.

A page is read without its line breaks. Of several places in it the first is meant: CHANGELOG.md has the newest first.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Named:
    """A version, and the words with which a page names it."""

    source: str
    constant: str
    page: str
    words: str


WIRE = ("crates/wire/src/lib.rs", "WIRE_VERSION")
GROUP = ("crates/group/src/message/greeting.rs", "GROUP_VERSION")
ALL = [
    Named(*WIRE, "docs/wire.md", r"`WIRE_VERSION` is (\d+);"),
    # The last row of the table of versions.
    Named(*WIRE, "docs/wire.md", r"\| version \| has \|(?: \|.*?\|)* \| (\d+) \| [^|]* \| *(?!\|)"),
    Named(*WIRE, "CHANGELOG.md", r"[Tt]he wire format is version (\d+)"),
    Named(*GROUP, "docs/groups-design.md", r"`GROUP_VERSION`, (\d+)"),
    Named(*GROUP, "CHANGELOG.md", r"[Mm]embers of (?:a group|groups) (?:speak |must be of one release \()version (\d+)"),
    Named("crates/profile/src/table.rs", "VERSION", "CHANGELOG.md", r"the table of a rank has version (\d+)"),
]


def fault_of(named, source, page):
    """What is wrong with a version in a page, if anything."""
    value = re.search(rf"const {named.constant}: \w+ = (\d+);", source)
    if value is None:
        return f"{named.source} has no number {named.constant}"
    written = re.search(named.words, " ".join(page.split()))
    if written is None:
        return f"{named.page} has no '{named.words}', which would name {named.constant} of {named.source}"
    if written[1] != value[1]:
        return f"{named.page} says '{written[0][-60:].strip()}', {named.constant} of {named.source} is {value[1]}"
    return None


def try_out():
    """Raises unless a number that differs and one that is missing are seen."""
    source = "pub const WIRE_VERSION: u16 = 5;"
    table = "| version | has |\n|---|---|\n| 4 | a |\n| {} | b |\n\nMore.\n"
    samples = [(ALL[0], "`WIRE_VERSION` is\n{}; so"), (ALL[1], table), (ALL[2], "The wire\nformat is version {}")]
    for named, page in samples:
        if fault_of(named, source, page.format(5)) or not fault_of(named, source, page.format(6)):
            raise AssertionError(f"'{named.words}' is not read")
        if not fault_of(named, source, "") or not fault_of(named, "", page.format(5)):
            raise AssertionError(f"what has no '{named.words}' is taken for right")


def main():
    try_out()
    texts = {path: (ROOT / path).read_text("utf-8") for named in ALL for path in (named.source, named.page)}
    faults = [fault for named in ALL if (fault := fault_of(named, texts[named.source], texts[named.page]))]
    print("\n".join(faults) or f"versions: pages name {len(ALL)} of them as the code has them")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

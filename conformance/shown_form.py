"""Whether a program printed what a page shows, whatever was measured and wherever it ran."""

import re

# What differs from run to run, by what may stand in its place. The longest forms come first.
PARTS = (
    # A column that is there only while something is in it.
    (r" unacknowledged [\d.]+ [KM]iB", r"(?: unacknowledged [\d.]+ \w+)?"),
    # What no one else can guess in an address.
    (r"/[0-9a-f]+…[0-9a-f]+/", r"/[0-9a-f]+/"),
    # A time, a size or a rate has its unit; where nothing was measured there is a dash.
    (r"(?:\d[\d.,]*|(?<= )-) (?:ns|us|ms|s|B|[KMG]i?B)(?:/s)?(?![\w])",
     r"(?:\d[\d.,]*|-) (?:ns|us|ms|s|B|[kKMG]i?B)(?:/s)?"),
    # A number, and a set of numbers.
    (r"-?\d+(?:[-.,:]\d+)*", r"-?\d+(?:[-.,:]\d+)*"),
    # What the page leaves out within a line.
    (r" ?(?:\.\.\.|…) ?", ".*"),
    # The host on which the output of the pages was made.
    (r"\b(?:vm|login)\b", r"[\w.-]+"),
)
PART = re.compile("|".join(f"({form})" for form, _ in PARTS))
LEFT_OUT = ("...", "…")


def in_one_form(line):
    """A line whose columns may be of other widths, without the mark of what is the largest of its column."""
    return re.sub(r" {2,}", " ", line.replace("*", " ").strip())


def pattern_of(line):
    """What a line of a page stands for."""
    line, pattern, at = in_one_form(line), "", 0
    for found in PART.finditer(line):
        pattern += re.escape(line[at:found.start()]) + PARTS[found.lastindex - 1][1]
        at = found.end()
    return re.compile(pattern + re.escape(line[at:]))


def missing_from(printed, shown):
    """The lines of a page that are not in what was printed, in the page's order. More may have been printed."""
    missing, at = [], 0
    came = [in_one_form(line) for line in printed]
    for line in shown:
        if not line.strip() or line.strip() in LEFT_OUT:
            continue
        pattern = pattern_of(line)
        found = next((index for index in range(at, len(came)) if pattern.fullmatch(came[index])), None)
        if found is None:
            missing.append(line)
        else:
            at = found + 1
    return missing


def check():
    """Raises if the comparison takes what it must not, or refuses what it must take."""
    page = ["warm: full, 4 of 4 in 1.5 ms", "...", "ranks 0,2-3  vm  200 B/s"]
    taken = ["warm: full, 16 of 16 in 12 us", "more", "ranks 0-3   host-7.x    - KiB/s"]
    if missing_from(taken, page):
        raise AssertionError(f"it refuses {taken}")
    for other in (taken[::-1], taken[:2], [taken[0].replace("full", "lost"), *taken[1:]]):
        if len(missing_from(other, page)) != 1:
            raise AssertionError(f"it takes {other}")

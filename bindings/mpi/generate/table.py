"""Keeps `functions.table`, the one table of MPI functions.

    table.py TABLE COMPILER:ABI ...            fails if a header has a function the table lacks
    table.py --update TABLE COMPILER:ABI ...   appends what is missing; never renumbers

ABI is `a` (the standard's), `o` (Open MPI) or `m` (MPICH).
"""

import sys
from dataclasses import dataclass

import header
import rules


@dataclass(frozen=True)
class Row:
    """One function of the table."""

    id: int
    name: str
    group: str
    abis: str
    bytes: str


def read(path):
    """The comment lines at the top, and the rows by function name."""
    head, rows = [], {}
    with open(path, encoding="utf-8") as table:
        for line in table:
            if line.startswith("#") or not line.strip():
                head.append(line)
                continue
            number, name, group, abis, rule = line.split()
            rows[name] = Row(int(number), name, group, abis, rule)
    return head, rows


def write(path, head, rows):
    with open(path, "w", encoding="utf-8") as table:
        table.writelines(head)
        for row in sorted(rows.values(), key=lambda row: row.id):
            table.write(f"{row.id} {row.name} {row.group} {row.abis} {row.bytes}\n")


def merged(rows, found):
    """The rows with every newly found function appended in the order of names."""
    rows = dict(rows)
    following = max((row.id for row in rows.values()), default=0) + 1
    for name in sorted({name for names in found.values() for name in names}):
        abis = {abi for abi, names in found.items() if name in names}
        if name in rows:
            old = rows[name]
            abis = "".join(sorted(abis | set(old.abis)))
            rows[name] = Row(old.id, name, old.group, abis, old.bytes)
        else:
            rows[name] = Row(following, name, rules.functional_class(name), "".join(sorted(abis)), rules.byte_rule(name))
            following += 1
    return rows


def main(arguments):
    update = arguments[:1] == ["--update"]
    path, *sources = arguments[update:]
    head, rows = read(path)
    found = {abi: header.functions(compiler) for compiler, abi in (source.split(":") for source in sources)}
    new = merged(rows, found)
    if update:
        write(path, head, new)
    elif new != rows:
        missing = sorted(set(new) - set(rows))
        raise SystemExit(f"{path}: the installed mpi.h has functions that the table lacks or marks for another "
                         f"ABI: {', '.join(missing) or 'ABI marks'}; run `make update-table` and commit the result")


if __name__ == "__main__":
    main(sys.argv[1:])

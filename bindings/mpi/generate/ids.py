"""Writes functions.h, what the shim's C code needs to know of the table.

    ids.py TABLE OUT
"""

import sys

import table


# Their numbers in control.h.
CLASSES = ["collective", "point-to-point", "wait", "rma", "file", "other"]

# Counting begins when they return: their time is not that of the rank.
INITIALISES = ("MPI_Init", "MPI_Init_thread")


def main(arguments):
    path, out = arguments
    _, rows = table.read(path)
    numbers = [row.id for row in rows.values()]
    if len(set(numbers)) != len(numbers) or min(numbers) < 1:
        raise SystemExit(f"{path}: two functions share a number, or one is below 1")
    with open(out, "w", encoding="utf-8") as file:
        file.write("/* Generated from functions.table. Do not edit. */\n")
        file.write(f"#define SAPWOOD_FUNCTION_IDS {max(numbers) + 1} /* one more than the highest id */\n")
        for row in rows.values():
            if row.name in INITIALISES:
                file.write(f"#define SAPWOOD_ID_{row.name.upper()} {row.id}\n")
        classes = {row.id: CLASSES.index(row.group) for row in rows.values()}
        listed = ", ".join(str(classes.get(id, CLASSES.index("other"))) for id in range(max(numbers) + 1))
        file.write(f"#define SAPWOOD_FUNCTION_CLASSES {{{listed}}}\n")
        file.write("/* Name and class of each, as initialisers of an array by id. */\n")
        file.write("#define SAPWOOD_FUNCTION_NAMES \\\n")
        for row in sorted(rows.values(), key=lambda row: row.id):
            file.write(f'    [{row.id}] = {{"{row.name}", "{row.group}"}}, \\\n')
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])

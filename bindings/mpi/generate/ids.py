"""Writes functions.h, what the shim's C code needs to know of the table.

    ids.py TABLE OUT
"""

import sys

import table


def main(arguments):
    path, out = arguments
    _, rows = table.read(path)
    numbers = [row.id for row in rows.values()]
    if len(set(numbers)) != len(numbers) or min(numbers) < 1:
        raise SystemExit(f"{path}: two functions share a number, or one is below 1")
    with open(out, "w", encoding="utf-8") as file:
        file.write("/* Generated from functions.table. Do not edit. */\n")
        file.write(f"#define SAPWOOD_FUNCTION_IDS {max(numbers) + 1} /* one more than the highest id */\n")


if __name__ == "__main__":
    main(sys.argv[1:])

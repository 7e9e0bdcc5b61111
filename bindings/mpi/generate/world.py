"""Writes the wrappers that put the program's world in the place of MPI_COMM_WORLD.

    world.py COMPILER OUT_C C_LIBRARY

Every function that takes a communicator by value gets a wrapper under its PMPI_
name, and its MPI_ name calls that one: Fortran's bindings, Python's and other tools
reach the library by one of the two. A communicator that a function takes by address
belongs to a variable of the program and is no handle of the world.
"""

import sys

import header
from wrappers import exports

# It ends the whole job.
WHOLE_WORLD = {"MPI_Abort"}

PROLOGUE = """/* Generated from mpi.h. Do not edit. */
#include <stddef.h>
#include <stdint.h>

#include "world.h"

#define NEXT(name) ({ \\
    static void *known; \\
    void *next = __atomic_load_n(&known, __ATOMIC_RELAXED); \\
    if (__builtin_expect(next == NULL, 0)) \\
        __atomic_store_n(&known, next = sapwood_world_next(#name), __ATOMIC_RELAXED); \\
    (__typeof__(name) *)next; })
"""

# Predefined attributes belong to the world that the library made; other attributes to the program's.
GET_ATTRIBUTE = """
static int is_predefined(int key)
{
    return key == MPI_TAG_UB || key == MPI_HOST || key == MPI_IO || key == MPI_WTIME_IS_GLOBAL ||
           key == MPI_UNIVERSE_SIZE || key == MPI_LASTUSEDCODE || key == MPI_APPNUM;
}
"""


def takes_comm(function):
    return any(p.base == "MPI_Comm" and not p.is_pointer for p in function.parameters)


def passed(function, name="sapwood_world"):
    return ", ".join(f"{name}({p.name})" if p.base == "MPI_Comm" and not p.is_pointer else p.name
                     for p in function.parameters)


def body(function):
    call = f"NEXT(P{function.name})({passed(function)})"
    names = [p.name for p in function.parameters]
    if function.name in ("MPI_Init", "MPI_Init_thread"):
        return [f"    int outcome = {call};", "    if (outcome == MPI_SUCCESS)", "        sapwood_world_divide();",
                "    return outcome;"]
    if function.name == "MPI_Finalize":
        return ["    sapwood_world_end();", f"    return {call};"]
    if function.name in ("MPI_Comm_get_attr", "MPI_Attr_get"):
        plain = f"NEXT(P{function.name})({', '.join(names)})"
        return [f"    return is_predefined({names[1]}) ? {plain} : {call};"]
    if function.name in ("MPI_Comm_set_errhandler", "MPI_Errhandler_set"):
        # Errors that belong to no communicator are raised on the library's own world.
        plain = f"NEXT(P{function.name})({', '.join(names)})"
        return [f"    int outcome = {call};", f"    if (outcome == MPI_SUCCESS && {names[0]} == sapwood_world_whole)",
                f"        {plain};", "    return outcome;"]
    return [f"    return {call};"]


def wrapper(function):
    declared = ", ".join(parameter.text for parameter in function.parameters) or "void"
    names = ", ".join(parameter.name for parameter in function.parameters)
    name = function.name
    return [f"SAPWOOD_EXPORT int P{name}({declared})", "{", *body(function), "}",
            f"SAPWOOD_EXPORT int {name}({declared})", "{", f"    return P{name}({names});", "}", ""]


def main(arguments):
    compiler, out, library = arguments
    exported = exports(library)
    text = [PROLOGUE, GET_ATTRIBUTE]
    count = 0
    for name, function in header.functions(compiler).items():
        is_wanted = takes_comm(function) or name in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")
        if is_wanted and name not in WHOLE_WORLD and {name, "P" + name} <= exported:
            text += wrapper(function)
            count += 1
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    print(f"{out}: {count} wrappers")


if __name__ == "__main__":
    main(sys.argv[1:])

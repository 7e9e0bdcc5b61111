"""Writes the wrappers of one ABI, from its mpi.h, its libraries and the table.

    wrappers.py TABLE ABI COMPILER OUT_C [FORTRAN_LIBRARY ...] -- C_LIBRARY

Every wrapper has the form that observe.h describes. A function gets one only if
the installed library exports both its MPI_ and its PMPI_ name.
"""

import re
import subprocess
import sys

import events
import header
import table
import transfers

# Calls that need something done besides counting.
INITIALISES = {"MPI_Init", "MPI_Init_thread"}
NAMES_COMM = "MPI_Comm_set_name"
NAMES_WINDOW = "MPI_Win_set_name"
# Functions with these names are told with the handle of the window that they are given.
ON_WINDOWS = "MPI_Win_"
# Functions after which another window or file may have the handle, before they return: what they are given, how its
# handle is read, and the begin of the names of what is done.
CLOSES = {"MPI_Win_free": ("window", "SAPWOOD_HANDLE", "sapwood_window"),
          "MPI_File_close": ("file", "SAPWOOD_FILE_HANDLE", "sapwood_file")}
# Parameters that name the other side of a call and its message, the one that is waited for first.
PEERS = ("source", "root", "dest", "target_rank")
TAGS = ("recvtag", "tag", "sendtag")
FREES_REQUEST = "MPI_Request_free"
FORGETS = {"MPI_Comm_free": "comm", "MPI_Comm_disconnect": "comm", "MPI_Type_free": "type"}


def exports(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


class CArguments:
    """How a byte rule reads the arguments of a C call."""

    def __init__(self, function):
        self.names = [parameter.name for parameter in function.parameters]
        self.large = "_large" if function.is_large_count else ""
        self.weigh = "sapwood_weigh" + self.large

    def count(self, i):
        return f"(int64_t){self.names[i]}"

    def item(self, i, index):
        return f"(int64_t){self.names[i]}[{index}]"

    def array(self, i):
        return self.names[i]

    def type(self, i):
        return self.names[i]

    comm = type
    root = type

    def request(self, i):
        return f"*{self.names[i]}"

    def value(self, i):
        """What the call has stored there."""
        return f"*{self.names[i]}"

    is_fortran = "false"
    error = "outcome"

    def text(self, i):
        return f"{self.names[i]}, strlen({self.names[i]})"

    def in_place(self, i):
        return f"{self.names[i]} == MPI_IN_PLACE"


class FortranArguments:
    """The same for a Fortran call, where everything is an address."""

    def __init__(self, function):
        self.names = [f"a{i}" for i in range(len(function.parameters))]
        self.integer = "MPI_Count" if function.is_large_count else "MPI_Fint"
        self.large = "_large" if function.is_large_count else ""
        self.weigh = "sapwood_weigh_fortran"

    def count(self, i):
        return f"(int64_t)*(const {self.integer} *)a{i}"

    def item(self, i, index):
        return f"(int64_t)((const {self.integer} *)a{i})[{index}]"

    def array(self, i):
        return f"a{i}"

    def type(self, i):
        return f"sapwood_type_f2c(a{i})"

    def comm(self, i):
        return f"sapwood_comm_f2c(a{i})"

    def root(self, i):
        return f"*(const MPI_Fint *)a{i}"

    def request(self, i):
        return f"sapwood_request_f2c(a{i})"

    def value(self, i):
        return self.root(i)

    is_fortran = "true"
    error = "(error == NULL ? MPI_SUCCESS : *error)"

    def text(self, i):
        return f"a{i}, l{i}"

    def in_place(self, i):
        return f"sapwood_fortran_in_place(a{i})"


def rule_parts(rule):
    """Name and argument numbers of a byte rule."""
    name, numbers = re.fullmatch(r"(\w+)\(([\d,]+)\)", rule).groups()
    return name, [int(number) for number in numbers.split(",")]


def bytes_expression(rule, a):
    """The C expression for a byte rule of the table; its head says what each means."""
    return "0" if rule == "none" else expression(*rule_parts(rule), a, "sapwood_bytes")


def expression(name, p, a, sized_by):
    """The same of a rule's name and argument numbers, with this function for counts of a type."""
    sized = lambda n, t: f"{sized_by}({n}, {a.type(t)})"
    total = lambda v, length: f"sapwood_sum{a.large}({a.array(v)}, {length})"
    weigh = lambda v, t, length: f"{a.weigh}({a.array(v)}, {a.array(t)}, {length})"
    if name == "count":
        return sized(a.count(p[0]), p[1])
    if name == "one":
        return sized("1", p[0])
    if name == "bcast":
        return f"{a.root(p[2])} == MPI_PROC_NULL ? 0 : {sized(a.count(p[0]), p[1])}"
    if name == "rooted":
        return f"sapwood_no_block({a.root(p[2])}) ? 0 : {sized(a.count(p[0]), p[1])}"
    if name == "sum":
        return sized(total(p[0], f"sapwood_local_size({a.comm(p[2])})"), p[1])
    if name == "times":
        return sized(f"{a.count(p[0])} * sapwood_local_size({a.comm(p[2])})", p[1])
    if name in ("own", "own_v"):
        there = a.count(p[3]) if name == "own" else a.item(p[3], a.root(p[5]))
        return (f"sapwood_no_block({a.root(p[5])}) ? 0 : {a.in_place(p[0])} ? {sized(there, p[4])} : "
                f"{sized(a.count(p[1]), p[2])}")
    if name in ("own_all", "own_all_v"):
        there = a.count(p[3]) if name == "own_all" else a.item(p[3], f"sapwood_rank({a.comm(p[5])})")
        return f"{a.in_place(p[0])} ? {sized(there, p[4])} : {sized(a.count(p[1]), p[2])}"
    if name == "each":
        block = f"({a.in_place(p[0])} ? {sized(a.count(p[3]), p[4])} : {sized(a.count(p[1]), p[2])})"
        return f"{block} * (uint64_t)sapwood_peers({a.comm(p[5])})"
    if name == "each_v":
        peers = f"sapwood_peers({a.comm(p[5])})"
        return f"{a.in_place(p[0])} ? {sized(total(p[3], peers), p[4])} : {sized(total(p[1], peers), p[2])}"
    if name == "each_w":
        peers = f"sapwood_peers({a.comm(p[5])})"
        return f"{a.in_place(p[0])} ? {weigh(p[3], p[4], peers)} : {weigh(p[1], p[2], peers)}"
    if name == "neighbors":
        return f"{sized(a.count(p[0]), p[1])} * (uint64_t)sapwood_neighbors({a.comm(p[2])})"
    if name == "neighbors_v":
        return sized(total(p[0], f"sapwood_neighbors({a.comm(p[2])})"), p[1])
    if name == "neighbors_w":
        return weigh(p[0], p[1], f"sapwood_neighbors({a.comm(p[2])})")
    raise SystemExit(f"functions.table: no such byte rule: {name}")


def known_bytes_expression(rule, a):
    """The same before the call: without a question to MPI, and SAPWOOD_NO_AMOUNT where that would need one."""
    name, p = rule_parts(rule)
    known = "sapwood_known_bytes"
    if name == "times":
        return f"sapwood_known_blocks({known}({a.count(p[0])}, {a.type(p[1])}), {a.comm(p[2])})"
    if name == "each":
        return f"sapwood_known_blocks({expression('own_all', p[:5], a, known)}, {a.comm(p[5])})"
    if name == "sum":
        return f"{known}(items, {a.type(p[1])})"
    return expression(name, p, a, known)


def sums_counts(row):
    return row.bytes.startswith("sum(")


def known_before(function, row, a):
    """The statements that find the bytes of a call before it, so that this is done once."""
    if not events.tells_bytes_before(function, row):
        return []
    lines = []
    if sums_counts(row):
        _, p = rule_parts(row.bytes)
        lines.append(f"    int64_t items = sapwood_known_sum{a.large}({a.array(p[0])}, {a.comm(p[2])});")
    return [*lines, f"    uint64_t known = {known_bytes_expression(row.bytes, a)};"]


def bytes_after(function, row, a):
    """The expression for the bytes of a call that has returned."""
    if not events.tells_bytes_before(function, row):
        return bytes_expression(row.bytes, a)
    asked = "sapwood_bytes_asked"
    name, p = rule_parts(row.bytes)
    moved = expression(name, p, a, asked)
    if sums_counts(row):
        moved = f"items >= 0 ? {asked}(items, {a.type(p[1])}) : {moved}"
    return f"LIKELY(known != SAPWOOD_NO_AMOUNT) ? known : {moved}"


def class_expression(function, a):
    for i, parameter in enumerate(function.parameters):
        if parameter.base == "MPI_Comm" and not parameter.is_pointer:
            return f"sapwood_class({a.comm(i)})"
    return "SAPWOOD_CLASS_NONE"


def given(function, base, a):
    """The window or file that a C call is given; Fortran's are not followed."""
    if a.is_fortran == "true":
        return None
    return next((a.names[i] for i, p in enumerate(function.parameters) if p.base == base and not p.is_pointer), None)


def closed_by(function, a):
    """What a C call frees or closes; Fortran's are not followed."""
    return CLOSES.get(function.name) if a.is_fortran == "false" else None


def enter(function, row, a):
    """The statement that tells which call this thread is in, with which rank."""
    entered = "    struct sapwood_activity *activity = "
    plain = {p.name: i for i, p in enumerate(function.parameters) if p.base == "int" and not p.is_pointer}
    comms = [i for i, p in enumerate(function.parameters) if p.base == "MPI_Comm" and not p.is_pointer]
    number = lambda names: next((f"(int32_t){a.root(plain[n])}" for n in names if n in plain), "SAPWOOD_NO_NUMBER")
    handle = f"SAPWOOD_HANDLE({a.comm(comms[0])})" if comms else "0"
    window = given(function, "MPI_Win", a) if function.name.startswith(ON_WINDOWS) else None
    if window is not None:
        handle = f"SAPWOOD_HANDLE({window})"
        return f"{entered}sapwood_enter({row.id}, {handle}, {number(('rank',))}, SAPWOOD_NO_NUMBER, begin);"
    file = given(function, "MPI_File", a)
    if closed_by(function, a):
        handle = "closing"
    elif file is not None:
        handle = f"sapwood_file_entered(SAPWOOD_FILE_HANDLE({file}))"
    if events.is_exchange(function):
        return (f"{entered}sapwood_enter_exchange({row.id}, {handle}, {number(PEERS)}, {number(TAGS)}, "
                f"{number(('dest',))}, begin);")
    tag = number(TAGS)
    if events.tells_bytes_before(function, row):
        tag = "sapwood_amount(known)"
    return f"{entered}sapwood_enter({row.id}, {handle}, {number(PEERS)}, {tag}, begin);"


def ended(function, row, a, succeeded):
    """The statements that count a call that has returned."""
    size_class = class_expression(function, a)
    comm = next((i for i, p in enumerate(function.parameters) if p.base == "MPI_Comm" and not p.is_pointer), None)
    on = "" if comm is None else f", .comm = {a.comm(comm)}, .has_comm = true"
    alone = [f"SAPWOOD_EXTRA(.function = {row.id}, .class = SAPWOOD_CLASS_NONE, .ticks = ticks);",
             f"sapwood_end(activity, {row.id}, SAPWOOD_CLASS_NONE, ticks);"]
    extra = lambda what: f"SAPWOOD_EXTRA(.function = {row.id}, .class = class, .ticks = ticks, {what}{on});"
    if transfers.rule_of(row) is not None:
        counted = transfers.ended(function, row, a, extra)
    elif events.is_persistent_collective(function, row):
        counted = [extra(".dest = -1"), *events.persistent_made(function, row, a, bytes_expression(row.bytes, a))]
        alone = [*events.persistent_failed(function, a), *alone]
    else:
        moved = bytes_expression(row.bytes, a)
        if size_class == "SAPWOOD_CLASS_NONE" and moved == "0":
            return ["    " + line for line in alone]
        target = next((i for i, p in enumerate(function.parameters) if p.name == "target_rank"), None)
        if target is not None and moved != "0":
            moved = f"{a.root(target)} == MPI_PROC_NULL ? 0 : {moved}"
        if moved == "0":
            counted = [extra(".dest = -1"), f"sapwood_end(activity, {row.id}, class, ticks);"]
        else:
            known = [] if events.records_bytes(function, row) else [f"uint64_t bytes = {moved};"]
            counted = [*known, extra(".bytes = bytes, .dest = -1"),
                       f"sapwood_end_sized(activity, {row.id}, class, ticks, bytes);"]
    good = [f"unsigned class = {size_class};", *counted]
    indented = lambda lines: ["        " + line for line in lines]
    return [f"    if (LIKELY({succeeded})) {{", *indented(good), "    } else {", *indented(alone), "    }"]


def body(function, row, a, symbol, twin, call, returns, succeeded):
    """The statements of a wrapper, shared by C and Fortran.

    `returns` is "int outcome = " or "", `call` the call of the next function.
    """
    lines = []
    leave = "return outcome;" if returns else "return;"
    forward = f"return {call};" if returns else "{ " + call + "; return; }"
    passed = call.replace("next", f"((__typeof__({symbol}) *)KNOWN)", 1)
    if function.name in FORGETS:
        kind = FORGETS[function.name]
        handle = f"*{a.names[0]}" if returns else f"sapwood_{kind}_f2c(a0)"
        lines.append(f"    if (WAS_STARTED) sapwood_forget_{kind}({handle});")
    # The same of a persistent request.
    if function.name == FREES_REQUEST:
        lines.append(f"    if (WAS_STARTED && sapwood_requests_are_followed()) sapwood_request_freed({a.request(0)});")
    if function.name == "MPI_Abort":
        lines.append(f"    sapwood_note_abort((int){a.root(1)});")
    closed = closed_by(function, a)
    if closed:
        what, handle, begin = closed
        # What it sets its argument to is another handle. While counting is paused, too.
        lines.append(f"    uint64_t {what} = {a.names[0]} == NULL ? 0 : {handle}(*{a.names[0]});")
        forward = f"{{ if (WAS_STARTED) {begin}_forget({what}); {forward} }}"
    lines.append("    static void *_Atomic known_next;")
    found = f"    __typeof__({symbol}) *next = (__typeof__({symbol}) *)next_of(&known_next, \"{symbol}\", \"{twin}\");"
    begun = [found, "    uint64_t begin;"]
    if function.name == "MPI_Finalize":
        lines += [*begun,
                  f"    if (!sapwood_finalize_begins({row.id}, &begin)) {forward}",
                  f"    {returns}{call};",
                  f"    sapwood_finalize_ends({row.id}, begin);"]
        return lines + ([f"    {leave}"] if returns else [])
    if function.name in INITIALISES:
        lines += [*begun,
                  f"    if (!sapwood_init_begins(&begin)) {forward}",
                  f"    {returns}{call};",
                  f"    sapwood_init_ends({row.id}, begin, {succeeded});"]
    else:
        before, recorded, failed = events.statements(function, row, a)
        before = transfers.before(function, row, a) + before
        closing = [f"    uint64_t closing = {closed[2]}_closing({closed[0]});"] if closed else []
        # First, before all that needs room on the stack.
        lines += [f"    if (sapwood_passes() && KNOWN != NULL) {forward.replace(call, passed)}",
                  *begun,
                  f"    if (!sapwood_begin(&begin)) {forward}",
                  *known_before(function, row, a), *closing, enter(function, row, a), *before,
                  f"    {returns}{call};",
                  "    uint64_t ticks = sapwood_ticks() - begin;"]
        if events.records_bytes(function, row):
            # Of one that MPI has refused for its arguments these may be no types and communicators.
            lines.append(f"    uint64_t bytes = LIKELY({succeeded}) || sapwood_has_begun_work({a.error}) ? "
                         f"({bytes_after(function, row, a)}) : 0;")
        if recorded:
            lines += [f"    if (LIKELY({succeeded})) {{", *["    " + line for line in recorded],
                      *(["    } else {", *["    " + line for line in failed]] if failed else []), "    }"]
        if function.name == NAMES_COMM:
            lines.append(f"    if (LIKELY({succeeded})) sapwood_name_comm({a.comm(0)}, {a.text(1)});")
        if function.name == NAMES_WINDOW and a.is_fortran == "false":
            lines.append(f"    if (LIKELY({succeeded})) sapwood_name_handle(SAPWOOD_HANDLE({a.names[0]}), {a.text(1)});")
        if closed:
            lines.append(f"    {closed[2]}_closed(closing);")
        lines += ended(function, row, a, succeeded)
    if returns:
        lines.append(f"    {leave}")
    return lines


def next_symbol(symbol, abi):
    """The profiling twin; MPICH calls those of its mpi_f08 bindings pmpir_."""
    if symbol.startswith("MPI_"):
        return "P" + symbol
    return "pmpir" + symbol[len("mpi"):] if abi == "m" and "_f08" in symbol else "p" + symbol


def c_wrapper(function, row, abi):
    a = CArguments(function)
    declared = ", ".join(parameter.text for parameter in function.parameters) or "void"
    call = f"next({', '.join(a.names)})"
    lines = [f"SAPWOOD_EXPORT int {function.name}({declared})", "{"]
    lines += body(function, row, a, function.name, next_symbol(function.name, abi), call, "int outcome = ", "outcome == MPI_SUCCESS")
    return lines + ["}", ""]


def fortran_wrapper(symbol, function, row, abi):
    """Fortran passes addresses, then the error's address, then text lengths."""
    passed = () if function.name == "MPI_Init" else function.parameters
    if function.name == "MPI_Init_thread":
        passed = function.parameters[2:]
    lengths = [f"l{i}" for i, parameter in enumerate(passed) if parameter.is_text]
    names = [f"a{i}" for i in range(len(passed))] + ["error"] + lengths
    declared = ", ".join([f"void *a{i}" for i in range(len(passed))] + ["MPI_Fint *error"]
                         + [f"size_t {length}" for length in lengths])
    lines = [f"void {symbol}({declared});", f"SAPWOOD_EXPORT void {symbol}({declared})", "{"]
    lines += body(function, row, FortranArguments(function), symbol, next_symbol(symbol, abi), f"next({', '.join(names)})", "",
                  "(error == NULL || *error == MPI_SUCCESS)")
    return lines + ["}", ""]


def fortran_symbols(libraries, abi, functions):
    """Exported Fortran names that need a wrapper, each with its C function.

    Open MPI's bindings call PMPI_ throughout. MPICH's mpif.h ones call MPI_,
    which the C wrappers see; of its mpi_f08 ones, those without a choice buffer
    call PMPI_ and are named mpi_..._f08_ or mpi_..._f08_large_. Of mpif.h only the
    initialisation is wrapped there, to refuse a program of another MPI by its name.
    """
    by_lower = {name.lower(): function for name, function in functions.items()}
    pattern = r"(mpi_\w+?)(_f08)?()_" if abi == "o" else r"(mpi_init|mpi_init_thread|mpi_\w+?(?=_f08))(_f08)?(_large)?_"
    found = {}
    for library in libraries:
        names = exports(library)
        for symbol in sorted(names):
            match = re.fullmatch(pattern, symbol)
            if not match or symbol.endswith("__") or next_symbol(symbol, abi) not in names:
                continue
            base = re.sub(r"_cptr$", "", match.group(1)) + ("_c" if match.group(3) else "")
            if base in by_lower:
                found[symbol] = by_lower[base]
    return found


PROLOGUE = """/* Generated from mpi.h and functions.table. Do not edit. */
#include <string.h>

#include "chain.h"
#include "completions.h"
#include "extras.h"
#include "failures.h"
#include "files.h"
#include "library.h"
#include "messages.h"
#include "observe.h"
#include "sizes.h"
#include "status.h"

#define LIKELY(condition) __builtin_expect((condition), 1)
#define WAS_STARTED (atomic_load_explicit(&sapwood_phase, memory_order_relaxed) >= SAPWOOD_PAUSED)

/* The function behind a wrapper, looked up at its first use. */
static inline void *next_of(void *_Atomic *known, const char *name, const char *twin)
{
    void *next = atomic_load_explicit(known, memory_order_relaxed);
    if (__builtin_expect(next == NULL, 0)) {
        next = sapwood_chained(name, twin);
        atomic_store_explicit(known, next, memory_order_relaxed);
    }
    return next;
}
/* The same once it was looked up; NULL before. */
#define KNOWN atomic_load_explicit(&known_next, memory_order_relaxed)
"""


def main(arguments):
    table_path, abi, compiler, out, *libraries = arguments
    fortran, c_library = libraries[: libraries.index("--")], libraries[-1]
    _, rows = table.read(table_path)
    functions = header.functions(compiler)
    exported = exports(c_library)
    text = [PROLOGUE]
    wrapped = {name: function for name, function in functions.items() if {name, "P" + name} <= exported}
    for name, function in wrapped.items():
        text += c_wrapper(function, rows[name], abi)
    symbols = fortran_symbols(fortran, abi, functions)
    for symbol, function in sorted(symbols.items()):
        text += fortran_wrapper(symbol, function, rows[function.name], abi)
    text += ["const char *const sapwood_wrapped[] = {",
             *[f'    "{name}",' for name in [*wrapped, *sorted(symbols)]], "    NULL};", ""]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    print(f"{out}: {len(wrapped)} C and {len(symbols)} Fortran wrappers; "
          f"{len(functions) - len(wrapped)} functions of mpi.h are not in {c_library}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Which statements of a wrapper count the bytes of point-to-point messages; see observe.h, messages.h.

A send counts what it sends when it is called, or started; a receive what has come, by its status when
it completes. The head of functions.table says what each rule means.
"""

import re

RULES = ("sent", "received", "exchanged", "posted", "exchanged_later", "started")


def rule_of(row):
    """Name and argument numbers of the row's rule; None for those that are no message's."""
    match = re.fullmatch(r"(\w+)\(([\d,]+)\)", row.bytes)
    if match is None or match.group(1) not in RULES:
        return None
    return match.group(1), [int(number) for number in match.group(2).split(",")]


def sent_bytes(row, a):
    """The expression for what a call sends."""
    name, p = rule_of(row)
    if name in ("received", "posted"):
        return "0"
    return f"{a.root(p[2])} == MPI_PROC_NULL ? 0 : sapwood_bytes({a.count(p[0])}, {a.type(p[1])})"


def takes_message(function, p):
    """Whether the receive takes a matched message instead of a source."""
    return function.parameters[p].base == "MPI_Message"


def message_of(a, p):
    return f"sapwood_message_f2c({a.names[p]})" if a.is_fortran == "true" else f"*{a.names[p]}"


def readable(a, status, condition=""):
    """Gives the call a status that can be read, where the program wants none."""
    name = a.names[status]
    return ["    MPI_Status own;", f"    if ({condition}sapwood_is_ignored({name}, {a.is_fortran})) {name} = &own;"]


def before(function, row, a):
    """Statements before the call."""
    rule = rule_of(row)
    if rule is None:
        return []
    name, p = rule
    if name in ("received", "exchanged"):
        return readable(a, p[-1])
    if name == "posted" and takes_message(function, p[0]):
        return [f"    bool has_message = {message_of(a, p[0])} != sapwood_library.message_no_proc;"]
    return []


def described(row, a, parts, request):
    """The description of the request that a call has made, at the parameter number `request`; `class` is known.
    `parts` are further initialisers."""
    of_call = f".function = {row.id}, .class = class, .site = __builtin_return_address(0)"
    return f"&(struct sapwood_posting){{{', '.join([of_call, *parts, f'.request = {a.request(request)}'])}}}"


def posting(function, row, a, peer, moved):
    """The description of the request of a message."""
    place = {parameter.name: i for i, parameter in enumerate(function.parameters)}
    comm = place.get("comm")
    tag = next((place[name] for name in ("recvtag", "tag") if name in place), None)
    parts = [f".comm = {a.comm(comm)}, .has_comm = true"] if comm is not None else []
    parts += [f".peer = (int){a.root(peer)}"] if not takes_message(function, peer) else []
    parts += [f".tag = (int){a.root(tag)}"] if tag is not None else []
    parts += [f".bytes = {moved}"] if moved is not None else []
    return described(row, a, parts, place["request"])


def ended(function, row, a, extra):
    """Statements that count a call that has succeeded; `class` is known. `extra` gives the one that
    tallies it, from initialisers."""
    name, p = rule_of(row)
    if name == "sent":
        return [f"uint64_t bytes = {sent_bytes(row, a)};", extra(f".bytes = bytes, .dest = (int){a.root(p[2])}"),
                f"sapwood_end_sized(activity, {row.id}, class, ticks, bytes);"]
    if name == "received":
        return [f"uint64_t bytes = sapwood_status_bytes({a.names[p[0]]});",
                extra(".bytes = bytes, .received = bytes, .dest = -1"),
                f"sapwood_end_received(activity, {row.id}, class, ticks, bytes);"]
    if name == "exchanged":
        return [f"uint64_t sent = {sent_bytes(row, a)};", f"uint64_t received = sapwood_status_bytes({a.names[p[3]]});",
                extra(f".bytes = sent + received, .received = received, .dest = (int){a.root(p[2])}"),
                f"sapwood_end_exchanged(activity, {row.id}, class, ticks, sent, received);"]
    if name == "exchanged_later":
        return [f"uint64_t sent = {sent_bytes(row, a)};", extra(f".bytes = sent, .dest = (int){a.root(p[2])}"),
                f"if ({a.root(p[3])} == MPI_PROC_NULL) {{",
                f"    sapwood_end_exchanged(activity, {row.id}, class, ticks, sent, 0);", "} else {",
                f"    sapwood_receive_posted({posting(function, row, a, p[3], None)});",
                f"    sapwood_end_sized(activity, {row.id}, class, ticks, sent);", "}"]
    is_persistent = "_init" in function.name
    peer = p[2] if name == "started" else p[0]
    follow = "sapwood_persistent_made" if is_persistent else "sapwood_receive_posted"
    described = posting(function, row, a, peer, sent_bytes(row, a) if name == "started" else None)
    kind = f", SAPWOOD_PERSISTENT_{'SEND' if name == 'started' else 'RECEIVE'}" if is_persistent else ""
    given = f"{follow}({described}{kind});"
    comes = "has_message" if takes_message(function, peer) else f"{a.root(peer)} != MPI_PROC_NULL"
    counted = f"sapwood_end_posted(activity, {row.id}, class, ticks);"
    nothing = counted if is_persistent else f"sapwood_end_received(activity, {row.id}, class, ticks, 0);"
    return [extra(".dest = -1"), f"if ({comes}) {{", f"    {given}", f"    {counted}", "} else {", f"    {nothing}", "}"]

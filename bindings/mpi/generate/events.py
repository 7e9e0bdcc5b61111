"""Which statements of a wrapper tell its call as an event; see events.h and messages.h.

Owns the lists of functions by what they do to communicators, messages and requests. A function
that is in none of them is no event.
"""

import rules
import transfers

# By what `rules.stem` gives. What completes a collective of neighbours does not wait for all members.
NEIGHBOURS = "Neighbor_"
# Of an intra-communicator, all members give as many bytes, by what functions.table counts of them. Those that
# end in v and w are not among them, except that MPI_Reduce_scatter has one list of counts for all.
ALIKE = ("Allgather", "Allreduce", "Alltoall", "Bcast", "Exscan", "Gather", "Reduce", "Reduce_scatter",
         "Reduce_scatter_block", "Scan", "Scatter")
# Byte rules of these. They need nothing but the call's arguments and the size of a communicator that is known, so that
# they can be followed before the call, when these may be wrong yet, and a question of them would end the program.
KNOWN_BEFORE = ("count", "bcast", "rooted", "own", "own_all", "each", "times", "sum")
SENDS = ("Send", "Bsend", "Ssend", "Rsend")
# A buffered send does not wait.
WAITING_SENDS = ("Send", "Ssend", "Rsend")
EXCHANGES = ("Sendrecv", "Sendrecv_replace")
FREE_COMM = ("MPI_Comm_free", "MPI_Comm_disconnect")
# Of a communicator that these make nothing may be asked before its request has completed.
PROMISE = ("MPI_Comm_idup", "MPI_Comm_idup_with_info")
# Made by calls of the new communicator's members alone, of which a tag tells the order; the two
# groups that MPI_Intercomm_create joins have no communicator in common.
TAGGED = ("MPI_Comm_create_group", "MPI_Intercomm_create")
# Each with whether it has one status, and how the completed ones are listed.
COMPLETIONS = {
    "MPI_Wait": ("1", "one"), "MPI_Test": ("1", "one"),
    "MPI_Waitany": ("count", "one"), "MPI_Testany": ("count", "one"),
    "MPI_Waitall": ("count", "all"), "MPI_Testall": ("count", "all"),
    "MPI_Waitsome": ("count", "some"), "MPI_Testsome": ("count", "some"),
}
WINDOW_LOCKS = ("MPI_Win_lock", "MPI_Win_lock_all")
WINDOW_UNLOCKS = ("MPI_Win_unlock", "MPI_Win_unlock_all")
ON = "if (sapwood_is_recording())"
FOLLOWED = "if (sapwood_requests_are_followed())"
NOTHING = ([], [], [])


def place_of(function, *names):
    """The number of the first parameter of one of these names."""
    return next((i for i, p in enumerate(function.parameters) if p.name in names), None)


def is_persistent_collective(function, row):
    """Whether it makes a request, each start of which is a collective."""
    return row.group == "collective" and rules.stem(function.name)[1]


def records_bytes(function, row):
    """Whether its event has the bytes of this process; they are known as `bytes` then."""
    is_alike = row.group == "collective" and rules.stem(function.name)[0] in ALIKE
    return is_alike and not is_persistent_collective(function, row)


def tells_bytes_before(function, row):
    """Whether the bytes of this process are told while it is inside; its event has them then, too."""
    return records_bytes(function, row) and row.bytes.partition("(")[0] in KNOWN_BEFORE


def comm_and_root(function, a):
    """The expressions for the communicator and the root of a collective."""
    comm = next(i for i, p in enumerate(function.parameters) if p.base == "MPI_Comm" and not p.is_pointer)
    root = place_of(function, "root")
    return a.comm(comm), "SAPWOOD_NO_NUMBER" if root is None else f"(int){a.root(root)}"


def persistent_made(function, row, a, moved):
    """Statements that note a persistent collective, whose request a call has made, and count this call; `class` is
    known. `moved` is the expression for the bytes of each start."""
    comm, root = comm_and_root(function, a)
    word, _ = rules.stem(function.name)
    has_bytes = row.bytes != "none"
    parts = [f".comm = {comm}, .has_comm = true, .peer = {root}",
             f".tag = {'sapwood_amount(bytes)' if word in ALIKE else '0'}",
             f".is_of_neighbours = {'true' if word.startswith(NEIGHBOURS) else 'false'}",
             f".bytes = {'bytes' if has_bytes else 'SAPWOOD_NO_AMOUNT'}"]
    posting = transfers.described(row, a, parts, place_of(function, "request"))
    made = f"sapwood_persistent_made({posting}, SAPWOOD_PERSISTENT_COLLECTIVE);"
    counted = f"{'sapwood_end_posted' if has_bytes else 'sapwood_end'}(activity, {row.id}, class, ticks);"
    return [*([f"uint64_t bytes = {moved};"] if has_bytes else []), made, counted]


def persistent_failed(function, a):
    """Statements behind a failed call that would have made the request of a persistent collective."""
    return [f"sapwood_persistent_space_failed({comm_and_root(function, a)[0]});"]


def collective(function, row, a, starts):
    comm, root = comm_and_root(function, a)
    kind = "SAPWOOD_EVENT_COLLECTIVE" + ("_STARTED" if starts else "")
    moved = "bytes" if records_bytes(function, row) else "SAPWOOD_NO_AMOUNT"
    counted = f"sapwood_collective(activity, {row.id}, {kind}, {comm}, {root}, {moved}, begin, ticks);"
    parts = f".function = {row.id}, .kind = {kind}, .root = {root}, .error = {a.error}, .bytes = {moved}"
    failed = [f"    sapwood_collective_failed({comm}, (struct sapwood_failed_collective){{{parts}, "
              ".begin = begin, .ticks = ticks});"]
    # Which others one of neighbours waits for is not followed.
    if not starts or rules.stem(function.name)[0].startswith(NEIGHBOURS):
        return [], ["    " + counted], failed
    request = place_of(function, "request")
    return [], [f"    uint32_t sequence = {counted}",
                # Behind a request of one without a number it is not known which rank is waited for.
                f"    if (sequence != 0 && sapwood_is_recording()) sapwood_collective_followed({row.id}, {comm}, sequence, "
                f"{root}, {a.request(request)}, begin + ticks);"], failed


def makes_communicator(function, made, a):
    """Of a function that makes a communicator, at the parameter number `made`."""
    comm = f"*{a.names[made]}" if a.is_fortran == "false" else a.comm(made)
    # One process alone learns of it, and more than once.
    if function.name == "MPI_Comm_get_parent":
        return [], [f"    sapwood_space_seen({comm});"], []
    parent = next((a.comm(i) for i, p in enumerate(function.parameters) if p.base == "MPI_Comm" and not p.is_pointer), None)
    if parent is None:
        return [], [f"    sapwood_space_made({comm}, 0);"], []
    origin = f"sapwood_origin_called({parent})"
    if function.name in TAGGED:
        above = parent if function.name == "MPI_Comm_create_group" else "sapwood_library.comm_null"
        origin = f"sapwood_origin_tagged({above}, (int){a.root(place_of(function, 'tag'))})"
    before = [f"    uint64_t origin = {origin};"]
    failed = [] if function.name in TAGGED else [f"    sapwood_origin_failed({parent});"]
    if function.name in PROMISE:
        return before, [f"    sapwood_space_promised({parent}, {comm}, origin);"], failed
    return before, [f"    sapwood_space_made({comm}, origin);"], failed


def sent(function, row, a, waits):
    dest, tag, comm = (place_of(function, *names) for names in (("dest",), ("tag", "sendtag"), ("comm",)))
    kind = "SAPWOOD_EVENT_SEND" if waits else "SAPWOOD_EVENT_SEND_STARTED"
    return [f"    {ON} sapwood_message_sent({row.id}, {kind}, {a.comm(comm)}, (int){a.root(dest)}, (int){a.root(tag)}, "
            f"{transfers.sent_bytes(row, a)}, begin, ticks);"]


def received(function, row, a):
    """Of a blocking receive or a probe, whose status can be read."""
    source, tag, comm, status = (place_of(function, *names)
                                 for names in (("source",), ("recvtag", "tag"), ("comm",), ("status",)))
    flag = place_of(function, "flag")
    when = ON if flag is None else f"if (sapwood_is_recording() && {a.value(flag)})"
    return [f"    {when} sapwood_message_received({row.id}, {a.comm(comm)}, (int){a.root(source)}, (int){a.root(tag)}, "
            f"{a.names[status]}, begin, ticks);"]


def handles(a, requests, count):
    """The requests that a call is given."""
    return f"(struct sapwood_handles){{.all = {a.names[requests]}, .count = {count}, .is_fortran = {a.is_fortran}}}"


def completion(function, row, a):
    count, order = COMPLETIONS[function.name]
    requests = place_of(function, "request", "array_of_requests")
    statuses = a.names[place_of(function, "status", "array_of_statuses")]
    number = "1" if count == "1" else f"(int){a.root(0)}"
    kind = "SAPWOOD_STATUS_OF_ONE" if order == "one" else "SAPWOOD_STATUS_OF_EACH"
    begun = "SAPWOOD_NO_TEST" if function.name.startswith("MPI_Test") else "SAPWOOD_NO_COMPLETION"
    before = [f"    struct sapwood_completion waited = {begun};",
              f"    {FOLLOWED} {statuses} = sapwood_completes(&waited, {handles(a, requests, number)}, "
              f"{statuses}, {kind});"]
    # MPICH calls an index so that it is no function of strings.h.
    flag, index, listed = (place_of(function, *names) for names in (("flag",), ("index", "indx"), ("outcount",)))
    if ("any" in function.name) != (index is not None) or ("some" in function.name) != (listed is not None):
        raise SystemExit(f"mpi.h names the parameters of {function.name} in an unknown way")
    done = "1" if flag is None else f"{a.value(flag)} ? 1 : 0"
    done = done if listed is None else f"(int){a.value(listed)}"
    indices = place_of(function, "array_of_indices") if listed is not None else index
    indices = "NULL" if indices is None else a.names[indices]
    completed = f"(struct sapwood_completed){{{indices}, {done}}}"
    any_waited = "if (__builtin_expect(waited.first != 0, 0))"
    recorded = [f"    {any_waited} sapwood_completed(&waited, {row.id}, {completed}, begin, ticks);"]
    return before, recorded, [f"    {any_waited} sapwood_completion_failed(&waited, {completed}, {a.error});"]


def window(function, a):
    """Of a function that makes, locks or unlocks a window; Fortran's windows are not followed."""
    if a.is_fortran == "true":
        return NOTHING
    win, comm = place_of(function, "win"), place_of(function, "comm")
    if win is None:
        return NOTHING
    handle = f"SAPWOOD_HANDLE({'*' if function.parameters[win].is_pointer else ''}{a.names[win]})"
    rank = place_of(function, "rank")
    rank = "-1" if rank is None else f"(int){a.root(rank)}"
    if function.name in WINDOW_LOCKS:
        return [], [f"    sapwood_window_locked({handle}, {rank});"], []
    if function.name in WINDOW_UNLOCKS:
        return [f"    sapwood_window_unlocked({handle}, {rank});"], [], []
    if comm is not None and function.parameters[win].is_pointer:
        return [], [f"    sapwood_window_made({a.comm(comm)}, {handle});"], []
    return NOTHING


def opens_file(function, a):
    """Of a function that opens a file; Fortran's files are not followed."""
    if function.name != "MPI_File_open" or a.is_fortran == "true":
        return NOTHING
    path, file = place_of(function, "filename"), place_of(function, "fh")
    if path is None or file is None:
        raise SystemExit(f"mpi.h names the parameters of {function.name} in an unknown way")
    return [], [f"    sapwood_file_opened(SAPWOOD_FILE_HANDLE({a.value(file)}), {a.names[path]});"], []


def is_exchange(function):
    """Whether it sends a message and receives another before it returns."""
    starts = any(p.base == "MPI_Request" for p in function.parameters)
    return not starts and rules.stem(function.name)[0] in EXCHANGES


def statements(function, row, a):
    """Statements before the call, after one that has succeeded, and after one that has failed."""
    word, is_persistent = rules.stem(function.name)
    starts = any(p.base == "MPI_Request" for p in function.parameters)
    made = next((i for i, p in enumerate(function.parameters) if p.base == "MPI_Comm" and p.is_pointer), None)
    if made is not None and function.name not in FREE_COMM:
        return makes_communicator(function, made, a)
    if row.group == "rma":
        return window(function, a)
    if row.group == "file":
        return opens_file(function, a)
    if row.group == "collective" and not is_persistent:
        return collective(function, row, a, starts)
    if is_persistent:
        return NOTHING
    if word in SENDS:
        return [], sent(function, row, a, word in WAITING_SENDS and not starts), []
    if word in EXCHANGES:
        return [], sent(function, row, a, False) + ([] if starts else received(function, row, a)), []
    if word == "Recv" and not starts:
        return [], received(function, row, a), []
    if word == "Mprobe":
        return transfers.readable(a, place_of(function, "status"), "sapwood_is_recording() && "), received(function, row, a), []
    if function.name in COMPLETIONS:
        return completion(function, row, a)
    if word in ("Start", "Startall"):
        count = f"(int){a.root(0)}" if word == "Startall" else "1"
        given = handles(a, place_of(function, "request", "array_of_requests"), count)
        started = f"    {FOLLOWED} sapwood_persistent_started({row.id}, {given}, begin, ticks);"
        return [], [started], [f"    {FOLLOWED} sapwood_persistent_start_failed({given});"]
    if function.name == "MPI_Cancel":
        return [f"    {ON} sapwood_events_lose_messages();"], [], []
    return NOTHING

"""Gives every MPI function its function class and its byte rule.

Used only when a function enters `functions.table`; afterwards the table is the
truth. Argument numbers count from 0 in the order of the C prototype. What each
rule means is written once, in the head of the table.
"""

import re

# Byte rules by the name of the blocking, small-count function. The non-blocking
# and large-count relatives put their arguments in the same places.
BYTES = {
    # point-to-point: (buffer, count, type, dest or source or message, ...)
    **{name: "sent(1,2,3)" for name in "Send Bsend Ssend Rsend".split()},
    "Recv": "received(6)",
    "Mrecv": "received(4)",
    "Sendrecv": "exchanged(1,2,3,11)",
    "Sendrecv_replace": "exchanged(1,2,3,8)",
    # collectives
    "Bcast": "bcast(1,2,3)",
    "Reduce": "rooted(2,3,5)",
    "Allreduce": "count(2,3)",
    "Scan": "count(2,3)",
    "Exscan": "count(2,3)",
    "Reduce_scatter": "sum(2,3,5)",
    "Reduce_scatter_block": "times(2,3,5)",
    "Gather": "own(0,1,2,4,5,6)",
    "Gatherv": "own_v(0,1,2,4,6,7)",
    "Scatter": "own(3,4,5,1,2,6)",
    "Scatterv": "own_v(4,5,6,1,3,7)",
    "Allgather": "own_all(0,1,2,4,5)",
    "Allgatherv": "own_all_v(0,1,2,4,6,7)",
    "Alltoall": "each(0,1,2,4,5,6)",
    "Alltoallv": "each_v(0,1,3,5,7,8)",
    "Alltoallw": "each_w(0,1,3,5,7,8)",
    "Neighbor_allgather": "count(1,2)",
    "Neighbor_allgatherv": "count(1,2)",
    "Neighbor_alltoall": "neighbors(1,2,6)",
    "Neighbor_alltoallv": "neighbors_v(1,3,8)",
    "Neighbor_alltoallw": "neighbors_w(1,3,8)",
    # one-sided: (origin, count, type, ...)
    **{name: "count(1,2)" for name in "Put Get Accumulate Rput Rget Raccumulate".split()},
    "Get_accumulate": "count(4,5)",
    "Rget_accumulate": "count(4,5)",
    "Fetch_and_op": "one(2)",
    "Compare_and_swap": "one(3)",
}

# Those that make a request which has the bytes, by name and by the name of the blocking function.
LATER = {
    "Irecv": "posted(3)",
    "Imrecv": "posted(3)",
    "Isendrecv": "exchanged_later(1,2,3,8)",
    "Isendrecv_replace": "exchanged_later(1,2,3,5)",
    "Recv_init": "posted(3)",
    **{f"{name}_init": "started(1,2,3)" for name in "Send Bsend Ssend Rsend".split()},
}

COLLECTIVES = (
    "Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Exscan Gather "
    "Gatherv Reduce Reduce_scatter Reduce_scatter_block Scan Scatter Scatterv "
    "Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw"
).split()
POINT_TO_POINT = (
    "Send Bsend Ssend Rsend Recv Mrecv Sendrecv Sendrecv_replace Psend Precv Probe Mprobe Start "
    "Startall Cancel Pready Pready_list Pready_range Parrived Buffer_attach Buffer_detach Buffer_flush "
    "Buffer_iflush Comm_attach_buffer Comm_detach_buffer Comm_flush_buffer Comm_iflush_buffer "
    "Session_attach_buffer Session_detach_buffer Session_flush_buffer Session_iflush_buffer"
).split()
ONE_SIDED = "Put Get Accumulate Get_accumulate Rput Rget Raccumulate Rget_accumulate Fetch_and_op Compare_and_swap"


def stem(name):
    """`MPI_Iallreduce_c` -> (`Allreduce`, is persistent initialisation)."""
    word = re.sub(r"^MPI_", "", name)
    word = re.sub(r"_c$", "", word)
    persistent = word.endswith("_init") and word not in ("Session_init",)
    if persistent:
        word = word[: -len("_init")]
    known = set(COLLECTIVES) | set(POINT_TO_POINT)
    if word not in known and word.startswith("I") and word[1:2].upper() + word[2:] in known:
        word = word[1].upper() + word[2:]
    return word, persistent


def functional_class(name):
    word, _ = stem(name)
    if word in COLLECTIVES:
        return "collective"
    if word in POINT_TO_POINT:
        return "point-to-point"
    if re.match(r"MPI_(Wait|Test(all|any|some)?$|Request_get_status)", name):
        return "wait"
    if word.startswith("File_"):
        return "file"
    if word.startswith("Win_") or word in ONE_SIDED.split():
        return "rma"
    return "other"


def byte_rule(name):
    word, persistent = stem(name)
    later = LATER.get(re.sub(r"^MPI_|_c$", "", name))
    if later is not None or (persistent and word not in COLLECTIVES):
        return later or "none"
    transfer = re.fullmatch(r"File_(i?)(read|write)(_at|_all|_at_all|_shared|_ordered)?(_all|_begin)?(_begin)?", word)
    if transfer:
        return "count(3,4)" if "_at" in word else "count(2,3)"
    return BYTES.get(word, "none")

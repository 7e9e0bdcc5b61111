"""What each test program must be counted as, from its text.

Every function gives, for one rank of `n`, a dictionary from (MPI function, size
class) to (count, bytes), complete unless its name says `some_`.
"""

from rank_profile import NONE, size_class


class Counts:
    """Adds up expected calls of one rank."""

    def __init__(self, n, start="MPI_Init"):
        self.world = size_class(n)
        self.calls = {}
        self.add(start, NONE)
        self.add("MPI_Finalize", NONE)

    def add(self, name, group=None, count=1, moved=0):
        key = (name, self.world if group is None else group)
        before = self.calls.get(key, (0, 0))
        self.calls[key] = (before[0] + count, before[1] + moved)

    def rank_and_size(self):
        self.add("MPI_Comm_rank")
        self.add("MPI_Comm_size")


def solver(rank, n):
    c = Counts(n)
    c.rank_and_size()
    c.add("MPI_Bcast", moved=20)
    # Transfers with the neighbours that the first and the last rank lack move nothing. With each of
    # the others both halves of an exchange have 8 bytes.
    neighbours = (rank > 0) + (rank < n - 1)
    c.add("MPI_Sendrecv", count=100, moved=50 * 2 * 8 * neighbours)
    c.add("MPI_Allreduce", count=70, moved=50 * 8 + 20 * 16)
    c.add("MPI_Irecv", count=40, moved=20 * 80 * neighbours)
    c.add("MPI_Isend", count=40, moved=20 * 80 * neighbours)
    c.add("MPI_Waitall", NONE, count=20)
    c.add("MPI_Barrier", count=3)
    c.add("MPI_Reduce", moved=24)
    return c.calls


def communicators(rank, n):
    c = Counts(n)
    c.rank_and_size()
    half = size_class(n // 2)
    odd = rank % 2
    c.add("MPI_Comm_split", count=11)
    c.add("MPI_Allreduce", count=5 + 1, moved=24)
    c.add("MPI_Allreduce", half, count=5, moved=20)
    c.add("MPI_Allreduce", 0, moved=4)
    c.add("MPI_Comm_dup")
    c.add("MPI_Comm_free", NONE, count=12)
    c.add("MPI_Intercomm_create", half)
    c.add("MPI_Alltoall", half, moved=12 * (n // 2))
    c.add("MPI_Bcast", half, moved=16 if odd or rank == 0 else 0)
    c.add("MPI_Gather", half, moved=20 if odd else 0)
    c.add("MPI_Comm_disconnect", NONE)
    c.add("MPI_Comm_set_errhandler")
    c.add("MPI_Send", NONE)
    return c.calls


def bytes_(rank, n):
    c = Counts(n)
    c.rank_and_size()
    staircase = 4 * n * (n + 1) // 2
    c.add("MPI_Alltoall", count=2, moved=20 * n)
    c.add("MPI_Alltoallv", moved=staircase)
    c.add("MPI_Alltoallw", moved=4 * n)
    c.add("MPI_Gather", moved=16)
    c.add("MPI_Gatherv", moved=4 * (rank + 1))
    c.add("MPI_Scatter", moved=20)
    c.add("MPI_Scatterv", moved=4 * (rank + 1))
    c.add("MPI_Allgather", count=2, moved=48)
    c.add("MPI_Allgatherv", moved=4 * (rank + 1))
    c.add("MPI_Reduce_scatter", moved=staircase)
    c.add("MPI_Reduce_scatter_block", moved=8 * n)
    c.add("MPI_Scan", moved=12)
    c.add("MPI_Exscan", moved=16)
    c.add("MPI_Iallreduce", moved=20)
    c.add("MPI_Wait", NONE)
    for name in ("MPI_Type_contiguous", "MPI_Type_commit", "MPI_Type_free"):
        c.add(name, NONE, count=3)
    c.add("MPI_Sendrecv", count=3, moved=2 * (8 + 16 + 24))
    c.add("MPI_Sendrecv_replace", moved=2 * 7)
    c.add("MPI_Recv_init", moved=2 * 12)
    c.add("MPI_Send_init", moved=2 * 12)
    c.add("MPI_Startall", NONE, count=2)
    c.add("MPI_Waitall", NONE, count=2)
    c.add("MPI_Request_free", NONE, count=2)
    c.add("MPI_Cart_create")
    c.add("MPI_Neighbor_allgather", moved=12)
    c.add("MPI_Neighbor_alltoall", moved=24)
    c.add("MPI_Comm_free", NONE)
    c.add("MPI_Win_create")
    c.add("MPI_Win_fence", NONE, count=2)
    c.add("MPI_Put", NONE, moved=24)
    c.add("MPI_Win_free", NONE)
    c.add("MPI_File_open")
    c.add("MPI_File_write_at", NONE, moved=40)
    c.add("MPI_File_write_at_all", NONE, moved=36)
    c.add("MPI_File_read", NONE, moved=32)
    c.add("MPI_File_close", NONE)
    c.add("MPI_Op_create", NONE)
    c.add("MPI_Allreduce", moved=8)
    c.add("MPI_Op_free", NONE)
    return c.calls


# Calls that complete requests, of which a program may need more or fewer.
COMPLETIONS = tuple("MPI_" + name for name in ("Wait", "Waitany", "Waitsome", "Waitall", "Test", "Testany", "Testsome",
                                               "Testall"))
# Of transfers.c: the requests that find no room, and the receive that is freed before its message comes.
TRANSFERS_UNTRACKED = 16 + 1
REQUESTS = 16384


def ramp(count):
    """Bytes of messages of 1, 2 .. 7, 1, 2 .. bytes."""
    return sum(1 + i % 7 for i in range(count))


def transfers(rank, n, truncated=0):
    """Without the calls that complete requests; what each function has received of its bytes.

    `truncated` bytes come in a receive whose message is longer: none where MPI says that it failed.
    """
    c = Counts(n)
    c.rank_and_size()
    c.add("MPI_Barrier")
    received = {}

    def receive(name, moved, group=None):
        key = (name, c.world if group is None else group)
        received[key] = received.get(key, 0) + moved
        return moved

    eight_ways = sum(8 + way for way in range(8)) + sum(100 + way for way in range(8))
    c.add("MPI_Irecv", count=16, moved=receive("MPI_Irecv", eight_ways))
    c.add("MPI_Send", count=16, moved=eight_ways)
    c.add("MPI_Isend", count=3, moved=5 + 9 + 11)
    c.add("MPI_Recv", moved=receive("MPI_Recv", 5))
    c.add("MPI_Mprobe", count=2)
    c.add("MPI_Mrecv", NONE, moved=receive("MPI_Mrecv", 9, NONE))
    c.add("MPI_Imrecv", NONE, moved=receive("MPI_Imrecv", 11, NONE))
    # The left neighbour sends as its rank says. Of two other exchanges one half is with MPI_PROC_NULL.
    sent, came = 10 * (rank + 1) + 6, 10 * ((rank - 1) % n + 1) + 7
    c.add("MPI_Sendrecv", count=3, moved=sent + receive("MPI_Sendrecv", came))
    c.add("MPI_Sendrecv_replace", moved=10 * n + receive("MPI_Sendrecv_replace", 10 * n))
    c.add("MPI_Irecv", moved=receive("MPI_Irecv", 6))
    c.add("MPI_Isend", moved=7)
    # All with MPI_PROC_NULL.
    for name in ("Send", "Recv", "Irecv", "Isend", "Send_init", "Recv_init"):
        c.add("MPI_" + name)
    c.add("MPI_Mprobe", count=2)
    c.add("MPI_Mrecv", NONE)
    c.add("MPI_Imrecv", NONE)
    c.add("MPI_Startall", NONE)
    c.add("MPI_Request_free", NONE, count=2)
    # Three starts of seven integers.
    c.add("MPI_Send_init", moved=3 * 28)
    c.add("MPI_Recv_init", moved=receive("MPI_Recv_init", 3 * 28))
    c.add("MPI_Startall", NONE, count=2)
    c.add("MPI_Start", NONE, count=2)
    c.add("MPI_Request_free", NONE, count=2)
    # Two vectors of three times two integers.
    for name in ("Type_vector", "Type_commit", "Type_free"):
        c.add("MPI_" + name, NONE)
    c.add("MPI_Irecv", moved=receive("MPI_Irecv", 2 * 24))
    c.add("MPI_Send", moved=2 * 24)
    # One that is cancelled, and twice one that is too small beside one of 13 bytes; then one that is freed.
    c.add("MPI_Irecv")
    c.add("MPI_Cancel", NONE)
    c.add("MPI_Comm_set_errhandler", count=2)
    c.add("MPI_Irecv", count=4, moved=receive("MPI_Irecv", 2 * (13 + truncated)))
    c.add("MPI_Send", count=4, moved=2 * (8 + 13))
    c.add("MPI_Error_class", NONE, count=3)
    c.add("MPI_Irecv")
    c.add("MPI_Request_free", NONE)
    c.add("MPI_Send", moved=50)
    for count in (300, 300, REQUESTS + 16):
        c.add("MPI_Irecv", count=count, moved=receive("MPI_Irecv", ramp(min(count, REQUESTS))))
        c.add("MPI_Send", count=count, moved=ramp(count))
    c.add("MPI_Get_count", NONE, count=10)
    return c.calls, received


def fortran(rank, n):
    c = Counts(n)
    c.rank_and_size()
    c.add("MPI_Allreduce", count=41, moved=30 * 16 + 10 * 24 + 8)
    c.add("MPI_Allreduce", size_class((n + 1 - rank % 2) // 2), moved=8)
    c.add("MPI_Irecv", moved=40)
    c.add("MPI_Isend", moved=40)
    c.add("MPI_Waitall", NONE)
    c.add("MPI_Sendrecv", moved=2 * 32)
    c.add("MPI_Irecv", count=2, moved=48 + 56)
    c.add("MPI_Send", count=3, moved=48 + 56)
    c.add("MPI_Waitany", NONE)
    c.add("MPI_Waitsome", NONE)
    c.add("MPI_Bcast", count=2, moved=48 + 48)
    c.add("MPI_Barrier")
    c.add("MPI_Alltoallv", moved=16 * n)
    c.add("MPI_Allgather", moved=24)
    c.add("MPI_Comm_split", count=2)
    c.add("MPI_Comm_free", NONE, count=2)
    for name in ("Type_contiguous", "Type_commit", "Type_free", "Get_processor_name",
                 "Info_create", "Info_set", "Info_get", "Info_free"):
        c.add("MPI_" + name, NONE)
    return c.calls


def threads(rank, n):
    c = Counts(n, start="MPI_Init_thread")
    c.add("MPI_Comm_dup", 0, count=4)
    c.add("MPI_Allreduce", 0, count=4000, moved=32000)
    moved = 4 * sum(1 + i % 8 for i in range(500))
    c.add("MPI_Irecv", 0, count=2000, moved=moved)
    c.add("MPI_Send", 0, count=2000, moved=moved)
    c.add("MPI_Wait", NONE, count=2000)
    c.add("MPI_Comm_free", NONE, count=4)
    return c.calls


def large(rank, n):
    c = Counts(n)
    c.rank_and_size()
    c.add("MPI_Allreduce_c", count=10, moved=120)
    c.add("MPI_Alltoallv_c", moved=8 * n)
    c.add("MPI_Allgatherv_c", moved=8)
    c.add("MPI_Sendrecv_c", moved=2 * 16)
    return c.calls


def regions(rank, n):
    return Counts(n).calls


REGIONS = {"whole": 1, "early": 0, "outer": 1, "left open": 0, "recursive": 5, "deep": 63}
# "early", "never begun", "left open", 6 too deep, one without a name, one too long
REGIONS_DROPPED = 1 + 1 + 1 + 6 + 1 + 1
# A rank has room for as many names.
REGIONS_MAX = 768


def peers(rank, n):
    """What each peer is sent, by its rank in the world: messages and bytes."""
    sent = {}
    def send(to, messages, moved):
        before = sent.get(to, (0, 0))
        sent[to] = (before[0] + messages, before[1] + moved)
    send((rank + 1) % n, 3, 300)
    half = [other for other in range(n) if other % 2 == rank % 2][::-1]
    send(half[(half.index(rank) + 1) % len(half)], 2, 16)
    send((rank - 1) % n, 1, 8)
    return sent


def unfinalized(rank, n):
    c = Counts(n)
    del c.calls[("MPI_Finalize", NONE)]
    c.add("MPI_Comm_rank")
    c.add("MPI_Allreduce", count=100, moved=800)
    return c.calls


def lazy(rank, n):
    return {("MPI_Allreduce", size_class(n)): (5, 40)}


def plugin(rank, n):
    c = Counts(n)
    c.add("MPI_Allreduce", count=5, moved=40)
    return c.calls


def some_mpi4py(rank, n):
    """mpi4py makes calls of its own, so only these are compared."""
    world = size_class(n)
    return {
        ("MPI_Allreduce", world): (25, 800),
        ("MPI_Bcast", world): (1, 56),
        ("MPI_Alltoallv", world): (1, 16 * n),
        ("MPI_Irecv", world): (1, 24),
        ("MPI_Isend", world): (1, 24),
        ("MPI_Waitall", NONE): (1, 0),
        ("MPI_Barrier", world): (1, 0),
        ("MPI_Init_thread", NONE): (1, 0),
    }

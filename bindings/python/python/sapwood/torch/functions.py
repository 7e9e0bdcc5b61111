"""The functions of `torch.distributed` that are observed, by their numbers in `bindings/mpi/functions.table`."""

from __future__ import annotations

COLLECTIVES = {
    "all_reduce": 560,
    "all_reduce_coalesced": 561,
    "all_gather": 562,
    "all_gather_coalesced": 563,
    "all_gather_into_tensor": 564,
    "all_gather_object": 565,
    "all_to_all": 566,
    "all_to_all_single": 567,
    "barrier": 568,
    "broadcast": 569,
    "broadcast_object_list": 570,
    "gather": 571,
    "gather_object": 572,
    "monitored_barrier": 573,
    "reduce": 574,
    "reduce_scatter": 575,
    "reduce_scatter_tensor": 576,
    "scatter": 577,
    "scatter_object_list": 578,
}
"""Those that all members of a group call, each with its group as an argument."""

NEW_GROUP = 579
DATA_PARALLEL = 580
"""The constructor of `DistributedDataParallel`, which compares and spreads the parameters."""

MESSAGES = {"send": 581, "recv": 582, "isend": 583, "irecv": 584}
BATCH = 585
WAIT = 586
INIT = 587
DESTROY = 588

OLD_NAMES = {
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
}
"""What some releases of PyTorch call them besides."""

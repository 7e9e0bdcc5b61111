"""Why back-ends are missing, in one word for programs."""

from typing import Literal, TypeAlias

Cause: TypeAlias = Literal[
    "other",
    "left",
    "died",
    "exited",
    "killed",
    "silent",
    "never-started",
    "late",
    "skipped",
    "away",
    "filter-failed",
    "refused",
    "out-of-memory",
]
"""`exited` has a `status`, `killed` a `signal`; a later version may have further causes."""

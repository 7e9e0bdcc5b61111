"""Event scopes: figures of chosen MPI calls, while a program runs, or of the hops of a running network or group.

    slow = Scope(functions="MPI_All*", longer=1e-3, by=("rank", "function"), every=0.5)
    with sapwood.scope.watch(["mpirun", "-np", "8", "lmp", "-in", "in.melt"], slow) as run:
        for gathering in run:
            for calls in gathering.groups:
                print(f"{gathering.elapsed:.1f} s: rank {calls.rank} {calls.function} {calls.mean:.6f} s")

    waits = Scope(source="hops", value="wait", by="edge", reduce="top=5")
    for gathering in sapwood.scope.follow(waits, network="job", seconds=3):
        for hops in gathering.groups:
            print(f"{hops.rank} waited at {hops.parent}: {hops.sum:.6f} s")

    parts = Scope(source="group", value="wait", by=("edge", "collective"))
    for gathering in sapwood.scope.follow(parts, group="tcp:10.0.0.1:4000", key="group.key"):
        for hops in gathering.groups:
            print(f"{hops.collective}: {hops.rank} waited at {hops.parent}: {hops.sum:.6f} s")

A scope says which calls are wanted, by what they are distinguished, and which time of them is reduced; that
happens beside the ranks. With `source="hops"` it is of the waves of a network instead, from one process of its tree
to the next, and with `source="group"` of the operations of a group, from one member to the next. The `sapwood` command
does the work. docs/trace.md says what each key means. All times are seconds. This module needs no native module.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from .errors import ScopeError, SystemError
from .programs import binary

Words = str | Sequence[str]

_LOOK_EVERY = 0.05
# How long a command may take to answer, beside the time that it is given, and to end when it is asked to.
_ANSWER_WITHIN = 60.0
_ENDS_WITHIN = 30.0
_NS = 1e-9
# What is followed, by the source of scopes over hops.
_NOTED_AT = {"hops": "network", "group": "group"}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which calls or hops, by what they are distinguished, and what of them. Other values are as the command has them.

    Hops have no `functions`, `communicators`, `cpu` and `when`, and calls no `streams`; only those of a group have
    `collectives`.
    """

    name: str | None = None
    """Its name, which its gatherings bear."""
    source: Literal["calls", "hops", "group"] | None = None
    """The MPI calls of a program, the hops of a network's streams, or those of a group's operations."""
    functions: Words | None = None
    """Functions, with `*` for any letters."""
    kinds: Words | None = None
    """Kinds of events, such as `collective` or `send`; of hops, of processes, such as `back-end`; of a group `root`,
    `relay` or `leaf`."""
    communicators: Words | None = None
    """Names of communicators, with `*` for any letters."""
    ranks: str | Sequence[int] | None = None
    """Ranks of `MPI_COMM_WORLD`, as `"0-3,7"` or as numbers; of hops, of processes of the tree; of a group, the first
    virtual nodes of members."""
    streams: str | Sequence[int] | None = None
    """Streams of hops, as `"1,7"` or as numbers."""
    collectives: Words | None = None
    """Operations of a group: `reduction` or `transfer`."""
    longer: float | None = None
    """Calls that lasted at least this long, or times of hops."""
    value: Literal["span", "gap", "up", "down", "two-way", "wait", "inside"] | None = None
    """The time in the call, or the time since the thread's call before. Of hops: the time of a link up, down or both
    ways, the wait of a child's part at its parent, or the time inside of a process."""
    reduce: str | None = None
    """`"sketch"`: all figures; `"sums"`: no median and no p99, for fewer bytes; `"top=10"`: the 10 groups with the
    largest sums, and all others as one."""
    by: Words | None = None
    """Any of `rank`, `function`, `communicator`, `kind`, `thread`; of hops `edge`, `process`, `stream`, `kind`;
    of a group `edge`, `process`, `kind`, `collective`, `root`."""
    every: float | Literal["end"] | None = None
    """The time between two gatherings; `"end"` for one at the end of the program."""
    window: int | None = None
    """Figures of the last calls of each group and thread only."""
    cpu: float | None = None
    """The part of a processor that a leaf may use, from 0 to 1."""
    bytes: int | None = None
    """Bytes per second that a process of the tree may send; of hops, that are read of the whole tree or group."""
    when: Literal["any", "waiting", "released"] | None = None
    """When leaves read: at any time, while a rank waits in a collective, or after all were released from one."""

    def document(self) -> dict[str, Any]:
        """The scope as it stands in a file of scopes."""
        return {field.name: written for field in fields(self) if (written := self._written(field.name)) is not None}

    def _written(self, key: str) -> str | list[str] | int | None:
        value = getattr(self, key)
        if value is None or isinstance(value, str):
            return value
        if key in ("longer", "every"):
            return f"{value:.9f}".rstrip("0").rstrip(".")
        if key == "cpu":
            return f"{value * 100:.7f}".rstrip("0").rstrip(".") + "%"
        if key == "bytes":
            return str(value)
        if key == "window":
            return int(value)
        return [str(one) for one in value]


STATISTICS = Scope(name="statistics", by=("rank", "function", "communicator"), window=100)
"""The statistics monitor of the EventSpace paper."""
COMPUTE = Scope(name="compute", value="gap", by=("rank", "function"))
"""The time between calls, by the rank that computed and the call that came then."""


@dataclass(frozen=True)
class Calls:
    """The figures of one group of calls, or of hops. What a scope does not tell apart is `None`."""

    rank: int | None
    """Of hops the process, of a group a member by its first virtual node; of a link, its child."""
    function: str | None
    communicator: str | None
    communicator_identity: str | None
    kind: str | None
    is_others: bool
    """Whether these are all groups for which an answer had no room, or beyond those with the largest sums."""
    count: int
    sum: float
    mean: float
    min: float
    max: float
    deviation: float
    median: float | None
    """Known within 1/32; `None` of `reduce="sums"`."""
    p99: float | None
    """What 99 % are at most, within 1/32; `None` likewise."""
    thread: int | None = None
    """The number of the thread in its rank."""
    parent: int | None = None
    """The parent of a link, of hops by `edge`."""
    stream: int | None = None
    """The stream, of hops by `stream`."""
    collective: str | None = None
    """Of a group by `collective`: `reduction` or `transfer`."""
    root: int | None = None
    """Of a group by `root`, the virtual node at the root of the operations."""


@dataclass(frozen=True)
class DroppedRing:
    """The ring of a thread of which calls were overwritten before they were read."""

    rank: int
    thread: int
    """The number of the thread in its rank."""
    events: int
    """How many."""


@dataclass(frozen=True)
class Gathering:
    """What one scope has gathered since the gathering before, with what is lacking and what it cost."""

    scope: str
    elapsed: float
    """From the start of the program."""
    is_last: bool
    groups: tuple[Calls, ...]
    """Those with the largest sums first."""
    ranks: int
    silent_ranks: int
    """Of these, ranks that do not record."""
    missing_leaves: int
    """Leaves that are not in it; of a group, members that did not answer."""
    events_read: int
    events_selected: int
    events_dropped: int
    """Overwritten before they were read."""
    events_waiting: int
    """Not read yet."""
    events_without_ring: int
    events_without_space: int
    throttled: int
    """Readings that ended because the share of a processor was used up."""
    put_off: int
    """Readings that ended because the ranks did not come to where events are to be read."""
    overdue: int
    """Events that were read at another moment, before they would have been overwritten."""
    groups_folded: int
    cpu: float
    """Processor time that all leaves have used."""
    source: str = "calls"
    """`calls`, or `hops` or `group`: of these an event is one time of one hop, and a rank a process or member."""
    events_damaged: int = 0
    """Records that their rank cannot have written, and that are left out."""
    unseen_streams: tuple[int, ...] = ()
    """Of hops, streams that the scope names and of which no event has come yet."""
    events_without_window: int = 0
    """Not among the last ones of their group and thread, because windows had no room for all of these."""
    dropped_rings: tuple[DroppedRing, ...] = ()
    """Of calls, the rings that have lost most of `events_dropped`, the first one most; 16 at most."""


def watch(command: Sequence[str], *scopes: Scope, processes: int | None = None, topology: str | None = None) -> Run:
    """Starts a program whose ranks are watched; without a scope by `STATISTICS`.

    Standard output and error are the program's, as without Sapwood. Raises `ScopeError` for a scope that makes no
    sense, before the program starts.
    """
    if not command:
        raise ScopeError("a command is needed, such as ['mpirun', '-np', '8', './solver']")
    for scope in scopes:
        if scope.source in _NOTED_AT:
            of = f'scopes with source="{scope.source}" are of a running {_NOTED_AT[scope.source]}'
            raise ScopeError(f"{of}, not of a program: call follow()")
    options = [] if processes is None else ["--processes", str(processes)]
    options += [] if topology is None else ["--topology", topology]
    return Run(scopes or (STATISTICS,), [*options, "--", *command])


def ask(*scopes: Scope, job: str | None = None, seconds: float | None = None) -> list[Gathering]:
    """Asks a program that `sapwood mpi` watches on this host, and whose ranks record: once, or for this time.

    `job` names the run, such as `mpi-4711`, where there are several.
    """
    options = [] if job is None else ["--job", job]
    options += [] if seconds is None else ["--for", f"{seconds:.3f}"]
    return _gathered(scopes or (STATISTICS,), options, _ANSWER_WITHIN + (seconds or 0))


def follow(
    *scopes: Scope,
    network: str | None = None,
    group: str | None = None,
    key: str | os.PathLike[str] | None = None,
    encryption: bool = True,
    seconds: float = 5.0,
    timeout: float = 2.0,
) -> list[Gathering]:
    """Follows the waves of a running network of this user for this time, or the operations of a group.

    The scopes are all of `source="hops"`, and `network` is its name, needed where several run. Or all are of
    `source="group"`, `group` is the address of any member, `key` the file with the group's key (without it
    `SAPWOOD_KEY` names the file), and `encryption` is as the group has it. `timeout` is how long processes or a member
    may take to answer. A network of the same thread must be turned meanwhile: call this in another thread.
    """
    if not scopes:
        raise ScopeError('a scope is needed, such as Scope(source="hops", value="wait", by="edge")')
    sources = {scope.source for scope in scopes}
    if not sources <= _NOTED_AT.keys():
        raise ScopeError('follow() takes scopes with source="hops" or "group"; of MPI calls call watch() or ask()')
    if len(sources) > 1:
        raise ScopeError("follow() takes scopes of one source: call it once for the network and once for the group")
    if (group is not None) != (sources == {"group"}):
        raise ScopeError('group= goes with scopes with source="group"')
    if (network is not None and group is not None) or (key is not None and group is None):
        raise ScopeError("network= is of scopes over hops, and key= of those over a group")
    options = ["--for", f"{seconds:.3f}", "--timeout", f"{timeout:.3f}"]
    options += [] if network is None else ["--network", network]
    options += [] if group is None else ["--group", group]
    options += [] if key is None else ["--key", os.fspath(key)]
    options += [] if encryption or group is None else ["--plain"]
    return _gathered(scopes, options, _ANSWER_WITHIN + seconds + timeout)


class Run:
    """A program that is watched. Iterating gives its gatherings as they come; leaving a `with` ends it if it runs."""

    def __init__(self, scopes: Sequence[Scope], words: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sapwood-scope-")
        try:
            command = _words(self._folder.name, scopes)
            self._lines = Path(self._folder.name, "lines.ndjson").open("x+", encoding="utf-8")
            self._process = subprocess.Popen([*command, "--ndjson", self._lines.name, *words])
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def pid(self) -> int:
        """The process of the `sapwood` command."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, which is the program's; `None` while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Waits for the end of the program, and gives its exit code. What was not iterated over can be afterwards."""
        return self._process.wait()

    def __iter__(self) -> Iterator[Gathering]:
        begun = ""
        while True:
            # Looked at before the file, so that nothing that was written before the end is passed over.
            has_ended = self._process.poll() is not None
            while line := self._lines.readline():
                begun += line
                if begun.endswith("\n"):
                    yield _gathering(begun)
                    begun = ""
            if has_ended:
                return
            time.sleep(_LOOK_EVERY)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program if it still runs, as a terminal would by SIGTERM, and removes what was gathered."""
        if self._process.poll() is None:
            self._process.terminate()
        is_ended = True
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            is_ended = False
            self._process.kill()
            self._process.wait()
        self._lines.close()
        self._folder.cleanup()
        if not is_ended:
            text = f"the program did not end within {_ENDS_WITHIN} s of SIGTERM; its processes may still run"
            warnings.warn(text, ResourceWarning, stacklevel=2)


def _gathered(scopes: Sequence[Scope], options: Sequence[str], timeout: float) -> list[Gathering]:
    """What the command gathers with these options until its end, which comes within this time."""
    with tempfile.TemporaryDirectory(prefix="sapwood-scope-") as folder:
        done = _finished([*_words(folder, scopes), "--ndjson", "-", *options], timeout)
    if done.returncode:
        raise SystemError(_said(done.stderr))
    return [_gathering(line) for line in done.stdout.splitlines()]


def _words(folder: str, scopes: Sequence[Scope]) -> list[str]:
    """The command for these scopes, which are found to make sense."""
    file = os.path.join(folder, "scopes.json")
    with open(file, "x", encoding="utf-8") as document:
        json.dump({"scope": [scope.document() for scope in scopes]}, document)
    words = [binary(), "trace", "scope", "--file", file]
    checked = _finished([*words, "--check"], _ANSWER_WITHIN)
    if checked.returncode:
        raise ScopeError(_said(checked.stderr).replace(f"{file}: ", "").replace(f"'{file}': ", ""))
    return words


def _finished(words: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, which comes within this time."""
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise SystemError(f"the sapwood command has not answered within {timeout:.0f} s") from None


def _said(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].removeprefix("sapwood: ") if lines else "the sapwood command failed without a message"


def _gathering(line: str) -> Gathering:
    record = json.loads(line)
    told = {field.name: record[field.name] for field in fields(Gathering) if field.name in record}
    groups = tuple(map(_calls, record["groups"]))
    told["unseen_streams"] = tuple(record.get("unseen_streams", ()))
    told["dropped_rings"] = tuple(DroppedRing(**ring) for ring in record.get("dropped_rings", ()))
    return Gathering(**{**told, "elapsed": record["elapsed_s"], "cpu": record["cpu_s"], "groups": groups})


def _calls(group: dict[str, Any]) -> Calls:
    def value(name: str) -> Any:
        if name in group:
            return group[name]
        time_ns = group[f"{name}_ns"]
        return None if time_ns is None else time_ns * _NS

    return Calls(**{field.name: value(field.name) for field in fields(Calls)})


__all__ = ["COMPUTE", "STATISTICS", "Calls", "DroppedRing", "Gathering", "Run", "Scope", "ask", "follow", "watch"]

"""The process groups of a rank: which recorder's space each one is, and how it is numbered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .recorder import Recorder, Space

DEFAULT = "default group"


class Groups:
    """Groups by their object. `None` is the default one, as PyTorch's functions take it.

    The N-th group that is created after the default one has the number N in all ranks, members or not: all
    ranks create all groups, in the same order.
    """

    def __init__(self, recorder: Recorder, members_of: Callable[[Any], Sequence[int]]) -> None:
        """`members_of` gives the ranks of the program that are in a group, in its order."""
        self._recorder = recorder
        self._members_of = members_of
        self._spaces: dict[Any, Space | None] = {}
        self._generation = 0
        self._created = 0
        self._alike: dict[tuple[int, ...], int] = {}
        self.get = self._spaces.get

    def open(self) -> Space | None:
        """The default group is about to be made."""
        self._spaces.clear()
        self._alike.clear()
        self._generation += 1
        self._created = 0
        ranks = range(self._recorder.size)
        space = self._recorder.add_space(DEFAULT, ranks, "default", self._generation)
        self._spaces[None] = space
        return space

    def know_default(self, group: object) -> None:
        """The default group's object, which can be given to functions too."""
        self._spaces[group] = self._spaces.get(None)

    def create(self, group: object, *, is_member: bool) -> None:
        """All ranks have made another group."""
        self._created += 1
        if is_member:
            self._add(group, f"group {self._created}", "group", self._created)

    def find(self, group: object) -> Space | None:
        """The space of a group that was not made by `new_group` here; none of one that this rank is not in."""
        try:
            members = tuple(self._members_of(group))
        except Exception:  # noqa: BLE001 - a group that is none is refused by the function that was called
            return None
        if self._recorder.rank not in members:
            return None
        count = self._alike[members] = self._alike.get(members, 0) + 1
        listed = ", ".join(map(str, members[:8])) + (", ..." if len(members) > 8 else "")
        return self._add(group, f"a group of ranks {listed}", "found", count)

    def _add(self, group: object, name: str, *parts: object) -> Space | None:
        try:
            members = tuple(self._members_of(group))
        except Exception:  # noqa: BLE001 - as above
            return None
        space = self._recorder.add_space(name, members, *parts, self._generation)
        self._spaces[group] = space
        return space

    def destroy(self, group: object) -> None:
        """A group is gone; all are with the default one."""
        space = self._spaces.get(group)
        gone = set(self._spaces.values()) if group is None or space is self._spaces.get(None) else {space}
        for one in gone:
            if one is not None:
                self._recorder.free_space(one)
        for key in [key for key, one in self._spaces.items() if one in gone]:
            del self._spaces[key]

"""Puts a recorder around the functions of `torch.distributed`.

Each function marks its call before it enters PyTorch and when it has returned. A function that is called
inside of another one is not seen: `all_gather_object` is one collective, though it is made of two.
"""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .functions import BATCH, COLLECTIVES, DESTROY, INIT, MESSAGES, NEW_GROUP, OLD_NAMES, WAIT
from .groups import Groups
from .memory import NO_NUMBER
from .recorder import COLLECTIVE, COMPLETED, NO_PEER, STARTED, Recorder, Space, pair

Function = Callable[..., Any]
ROOTS = ("src", "dst", "group_src", "group_dst")


class Request:
    """What a work that was started is: its space, number (0 of a message), root or peer, and tag."""

    __slots__ = ("number", "peer", "space", "tag")

    def __init__(self, space: Space, number: int, peer: int, tag: int) -> None:
        self.space = space
        self.number = number
        self.peer = peer
        self.tag = tag


class Argument:
    """Where a function takes an argument: by its name, or by its place."""

    __slots__ = ("default", "name", "place")

    def __init__(self, function: Function, name: str) -> None:
        parameters = inspect.signature(function).parameters
        self.name = name
        self.place = list(parameters).index(name) if name in parameters else -1
        default = parameters[name].default if name in parameters else None
        self.default = None if default is inspect.Parameter.empty else default

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Its value in a call."""
        if self.name in kwargs:
            return kwargs[self.name]
        return args[self.place] if 0 <= self.place < len(args) else self.default


class Calls:
    """The wrapped functions of one process. Nothing is recorded before `init_process_group` is called."""

    def __init__(self, make_recorder: Callable[[int, int], Recorder | None]) -> None:
        """`make_recorder` is called once, with rank and number of ranks; None where no leaf is there."""
        self._make_recorder = make_recorder
        self._is_tried = False
        self.recorder: Recorder | None = None
        self.groups: Groups | None = None
        self._requests: weakref.WeakKeyDictionary[Any, Request] = weakref.WeakKeyDictionary()
        self._module: ModuleType | None = None

    def leave(self) -> None:
        """In a forked child, which is not a rank."""
        if self.recorder is not None:
            self.recorder.leave()
        self.recorder = None
        self._is_tried = True

    def wrap(self, module: ModuleType) -> None:
        """Wraps the functions of `torch.distributed.distributed_c10d`, before others import them from there."""
        self._module = module
        wrappers: dict[str, Callable[[Function], Function]] = {
            "init_process_group": self._wrap_init,
            "destroy_process_group": self._wrap_destroy,
            "new_group": self._wrap_new_group,
            "batch_isend_irecv": self._wrap_batch,
        }
        for name, function in COLLECTIVES.items():
            wrappers[name] = functools.partial(self.wrap_collective, function=function)
        for name, now in OLD_NAMES.items():
            wrappers[name] = functools.partial(self.wrap_collective, function=COLLECTIVES[now])
        for name, function in MESSAGES.items():
            wrappers[name] = functools.partial(self._wrap_message, function=function)
        for name, wrapper in wrappers.items():
            original = getattr(module, name, None)
            if original is not None:
                setattr(module, name, functools.wraps(original)(wrapper(original)))
        work = getattr(module, "Work", None)
        if work is not None:
            work.wait = functools.wraps(work.wait)(self._wrap_wait(work.wait))

    def space_of(self, group: Any) -> Space | None:
        """The space of a group in which this rank is."""
        groups = self.groups
        if groups is None:
            return None
        space = groups.get(group)
        return space if space is not None else groups.find(group)

    def wrap_collective(self, original: Function, function: int, group_name: str = "group") -> Function:
        """A function that all members of the group call that is one of its arguments."""
        group_of, is_async = Argument(original, group_name), Argument(original, "async_op")
        roots = [Argument(original, name) for name in ROOTS]
        roots = [root for root in roots if root.place >= 0]

        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            if recorder is None:
                return original(*args, **kwargs)
            thread = recorder.thread()
            space = None if thread.inside else self.space_of(group_of.of(args, kwargs))
            if space is None:
                return original(*args, **kwargs)
            root = self._root(space, roots, args, kwargs) if roots else -1
            peer = NO_PEER if root < 0 else pair(root, NO_NUMBER)
            begin = recorder.enter(thread, function, space, peer)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                recorder.fail_call(thread, function, begin)
                raise
            number = recorder.count(space, function, root)
            span = recorder.leave_call(thread, function, space, begin)
            is_started = is_async.of(args, kwargs) and result is not None
            if is_started:
                self._requests[result] = Request(space, number, root, NO_NUMBER)
            if recorder.is_recording:
                kind = STARTED if is_started else COLLECTIVE
                recorder.record(thread, (begin, span), function, kind, space, number, root)
            return result

        return call

    @staticmethod
    def _root(space: Space, roots: list[Argument], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        for argument in roots:
            root = argument.of(args, kwargs)
            if root is not None:
                return int(root) if argument.name.startswith("group_") else space.rank_of(root)
        return -1

    def _wrap_message(self, original: Function, function: int) -> Function:
        group_of, tag_of = Argument(original, "group"), Argument(original, "tag")
        roots = [Argument(original, name) for name in ROOTS]
        roots = [root for root in roots if root.place >= 0]

        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            if recorder is None:
                return original(*args, **kwargs)
            thread = recorder.thread()
            space = None if thread.inside else self.space_of(group_of.of(args, kwargs))
            if space is None:
                return original(*args, **kwargs)
            # -1 is any source.
            peer, tag = self._root(space, roots, args, kwargs), int(tag_of.of(args, kwargs) or 0)
            begin = recorder.enter(thread, function, space, pair(peer, tag))
            try:
                result = original(*args, **kwargs)
            finally:
                recorder.leave_call(thread, function, space, begin)
            if hasattr(result, "wait"):
                self._requests[result] = Request(space, 0, peer, tag)
            return result

        return call

    def _wrap_batch(self, original: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            thread = recorder.thread() if recorder is not None else None
            if recorder is None or thread is None or thread.inside:
                return original(*args, **kwargs)
            begin = recorder.enter(thread, BATCH, None, NO_PEER)
            try:
                return original(*args, **kwargs)
            finally:
                recorder.leave_call(thread, BATCH, None, begin)

        return call

    def _wrap_wait(self, original: Function) -> Function:
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            request = self._requests.get(work) if recorder is not None else None
            if recorder is None or request is None:
                return original(work, *args, **kwargs)
            thread = recorder.thread()
            if thread.inside:
                return original(work, *args, **kwargs)
            space, number, root = request.space, request.number, request.peer
            peer = NO_NUMBER if root < 0 and number else root
            begin = recorder.enter_wait(thread, space, number, pair(peer, request.tag))
            try:
                result = original(work, *args, **kwargs)
            finally:
                span = recorder.leave_call(thread, WAIT, None, begin)
                self._requests.pop(work, None)
            if number and recorder.is_recording:
                recorder.record(thread, (begin, span), WAIT, COMPLETED, space, number, root)
            return result

        return wait

    def _wrap_init(self, original: Function) -> Function:
        rank_of, size_of = Argument(original, "rank"), Argument(original, "world_size")
        method = Argument(original, "init_method")

        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            told = self._told((rank_of, size_of, method), args, kwargs)
            module: Any = self._module
            if told is not None and not module.is_initialized():
                self._open(*told)
            recorder = self.recorder
            space = self.groups.get(None) if self.groups is not None else None
            if recorder is None:
                result = original(*args, **kwargs)
            else:
                thread = recorder.thread()
                begin = recorder.enter(thread, INIT, space, NO_PEER)
                try:
                    result = original(*args, **kwargs)
                finally:
                    recorder.leave_call(thread, INIT, space, begin)
            if told is None:
                self._open(module.get_rank(), module.get_world_size())
            if self.groups is not None:
                self.groups.know_default(module._get_default_group())
            return result

        return init_process_group

    @staticmethod
    def _told(arguments: tuple[Argument, Argument, Argument], args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[int, int] | None:
        """Rank and number of ranks, if they are known before the ranks have found each other."""
        rank, size, method = (argument.of(args, kwargs) for argument in arguments)
        by_environment = method in (None, "env://")
        for variable, value in (("RANK", rank), ("WORLD_SIZE", size)):
            if isinstance(value, int) and value >= 0:
                continue
            text = os.environ.get(variable, "")
            if not by_environment or not text.isdecimal():
                return None
            rank, size = (int(text), size) if variable == "RANK" else (rank, int(text))
        return (rank, size) if 0 <= rank < size else None

    def _open(self, rank: int, size: int) -> None:
        """The default group is made: the first time the rank's memory is."""
        if not self._is_tried:
            self._is_tried = True
            self.recorder = self._make_recorder(rank, size)
            if self.recorder is not None:
                module: Any = self._module
                self.groups = Groups(self.recorder, module.get_process_group_ranks)
        recorder = self.recorder
        # A program that makes it again as another rank cannot be followed.
        if recorder is not None and (recorder.rank, recorder.size) != (rank, size):
            self.recorder = None
        if self.groups is not None:
            self.groups.open()

    def _wrap_destroy(self, original: Function) -> Function:
        group_of = Argument(original, "group")

        def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
            recorder = self.recorder
            if recorder is None or self.groups is None:
                return original(*args, **kwargs)
            thread, group = recorder.thread(), group_of.of(args, kwargs)
            begin = recorder.enter(thread, DESTROY, None, NO_PEER)
            try:
                result = original(*args, **kwargs)
            finally:
                recorder.leave_call(thread, DESTROY, None, begin)
            self.groups.destroy(group)
            return result

        return destroy_process_group

    def _wrap_new_group(self, original: Function) -> Function:
        # All ranks call it, as a collective of the default group, unless they are told to synchronise among the
        # members only.
        is_local = Argument(original, "use_local_synchronization")
        counted = self.wrap_collective(original, NEW_GROUP, group_name="")

        def new_group(*args: Any, **kwargs: Any) -> Any:
            recorder, groups = self.recorder, self.groups
            if recorder is None or groups is None or is_local.of(args, kwargs):
                return original(*args, **kwargs)
            is_nested = recorder.thread().inside
            group = counted(*args, **kwargs)
            if not is_nested:
                module: Any = self._module
                is_member = group is not None and group is not module.GroupMember.NON_GROUP_MEMBER
                groups.create(group, is_member=is_member)
            return group

        return new_group

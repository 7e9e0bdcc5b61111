"""Makes the reductions of `DistributedDataParallel` visible, which PyTorch starts from C++.

A communication hook that does what PyTorch does without one, bit by bit, is registered at the first forward
pass of a model for which the script has registered none.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .calls import Calls
from .functions import COLLECTIVES, DATA_PARALLEL

_LATEST: list[list[tuple[Any, Any, Any]]] = [[]]
"""What the latest pass has reduced. It is kept until the next one: a thread of gloo that would let go of a
tensor last would need the interpreter, for which it waits without end while a process group is destroyed."""


class Reduction:
    """The hook of one model: reduces its gradients, bucket by bucket, by the wrapped `all_reduce`."""

    def __init__(self, distributed: Any, group: Any) -> None:
        self._distributed = distributed
        self._group = group
        self._open: list[tuple[Any, Any, Any]] = []
        self.other: tuple[Any, Callable[..., Any]] | None = None

    def __call__(self, _state: object, bucket: Any) -> Any:
        """The future of a bucket's mean over the ranks.

        All futures are set when the last bucket's hook returns: all gradients of this pass are computed by then,
        and PyTorch would wait for them next. None is set by a thread of the communication library, which could
        meet an interpreter that ends.
        """
        if self.other is not None:
            state, hook = self.other
            return hook(state, bucket)
        if bucket.index() == 0:
            self._open = _LATEST[0] = []
        gradients = bucket.buffer().mul_(1.0 / self._distributed.get_world_size(self._group))
        work = self._distributed.all_reduce(gradients, group=self._group, async_op=True)
        device = gradients.device
        future = sys.modules["torch"].futures.Future(devices=None if device.type == "cpu" else [device])
        self._open.append((work, future, gradients))
        if bucket.is_last():
            for one, its_future, reduced in self._open:
                one.wait()
                its_future.set_result(reduced)
        return future


def wrap(module: ModuleType, calls: Calls) -> None:
    """Wraps the class `DistributedDataParallel` of its module."""
    distributed: Any = getattr(module, "dist")  # noqa: B009 - as the module has imported it
    parallel: Any = getattr(module, "DistributedDataParallel")  # noqa: B009
    hooks: weakref.WeakKeyDictionary[Any, Reduction | None] = weakref.WeakKeyDictionary()
    parallel.__init__ = _same(parallel.__init__, calls.wrap_collective(
        parallel.__init__, DATA_PARALLEL, group_name="process_group"))
    register, builtin, forward = (
        parallel.register_comm_hook, parallel._register_builtin_comm_hook, parallel.forward)

    def register_comm_hook(model: Any, state: object, hook: Callable[..., Any]) -> Any:
        ours = hooks.get(model)
        if ours is not None and ours.other is None:
            # PyTorch takes one hook only, which is there already: it passes on to the script's.
            ours.other = (state, hook)
            return None
        hooks[model] = None
        return register(model, state, hook)

    def register_builtin_comm_hook(model: Any, *args: Any, **kwargs: Any) -> Any:
        hooks[model] = None
        return builtin(model, *args, **kwargs)

    def forward_with_hook(model: Any, *args: Any, **kwargs: Any) -> Any:
        if model not in hooks and calls.recorder is not None:
            reduction = hooks[model] = Reduction(distributed, model.process_group)
            # PyTorch looks at the names and annotations of a hook's arguments.
            register(model, None, lambda state, bucket: reduction(state, bucket))
        return forward(model, *args, **kwargs)

    parallel.register_comm_hook = _same(register, register_comm_hook)
    parallel._register_builtin_comm_hook = _same(builtin, register_builtin_comm_hook)
    parallel.forward = _same(forward, forward_with_hook)
    spread: Any = getattr(distributed, "_broadcast_coalesced", None)
    if spread is not None:

        def broadcast_coalesced(process_group: Any, tensors: Any, buffer_size: int, src: int = 0) -> Any:
            return spread(process_group, tensors, buffer_size, src)

        distributed._broadcast_coalesced = calls.wrap_collective(
            broadcast_coalesced, COLLECTIVES["broadcast"], group_name="process_group")


def _same(original: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper under the name of what it wraps."""
    return functools.wraps(original)(wrapper)

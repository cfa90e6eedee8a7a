"""One forward pass of a guest, visit by visit: shapes, operations, time, and what it failed of."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sleuth.adapters.torch.failure import explain
from sleuth.adapters.torch.inspecting.layer_calls import Visitor
from sleuth.adapters.torch.inspecting.model_copy import call, guest
from sleuth.adapters.torch.pass_listener import Listener
from sleuth.core.contract.inspection import Passage, Visit
from sleuth.core.observation import Failure

# The least of so many passes is one that nothing disturbed.
TIMED_PASSES = 7
TIMED_SECONDS = 10.0


def passage(model: nn.Module, inputs: Any, *, timed: bool = False, as_is: bool = False) -> Passage:
    with guest(model, as_is=as_is) as visited, torch.no_grad():
        visitor = Visitor(visited)
        try:
            counted = _count(visitor, inputs)
        except Exception as error:
            visits = visitor.visits()
            return Passage(visits, _explained(error, model, inputs, as_is), flops_counted=False)
    visits = visitor.visits()
    visits = _timed(visits, model, inputs, as_is) if timed else tuple(replace(v, seconds=None) for v in visits)
    return Passage(visits, flops_counted=counted)


def _count(visitor: Visitor, inputs: Any) -> bool:
    """With torch's own counter; where that cannot follow (a subclass of tensors, compiled code), without."""
    with _unfused(visitor.model):
        try:
            with FlopCounterMode(display=False) as counter, visitor.following():
                visitor.spent = counter.get_total_flops
                call(visitor.model, inputs)
                return True
        except Exception:
            _start_again(visitor)
        with visitor.following():
            call(visitor.model, inputs)
        return False


def _start_again(visitor: Visitor) -> None:
    visitor.noted.clear()
    visitor.stack.clear()
    visitor.spent = lambda: 0


@contextmanager
def _unfused(model: nn.Module) -> Iterator[None]:
    """A fused LSTM calls none of the operations that are counted. `guest` puts these switches back; without them convolutions
    are slow."""
    if any(isinstance(module, nn.RNNBase) for module in model.modules()):
        torch._C._set_mkldnn_enabled(False)
        torch._C._set_cudnn_enabled(False)
    yield


def _explained(error: Exception, model: nn.Module, inputs: Any, as_is: bool) -> Failure:
    """Once more, with a listener: what each operation was given tells more than the message."""
    with guest(model, as_is=as_is) as visited:
        listener = Listener(visited)
        try:
            with torch.no_grad(), listener.listening():
                call(visited, inputs)
        except Exception as again:
            return explain(again, "forward", visited, listener.ops)
    return explain(error, "forward", model)


def _timed(visits: tuple[Visit, ...], model: nn.Module, inputs: Any, as_is: bool) -> tuple[Visit, ...]:
    passes: list[list[float]] = []
    with guest(model, as_is=as_is) as visited, torch.no_grad():
        call(visited, inputs)
        began = time.perf_counter()
        while len(passes) < TIMED_PASSES and (not passes or time.perf_counter() - began < TIMED_SECONDS):
            visitor = Visitor(visited, shapes=False)
            with visitor.following():
                call(visited, inputs)
            passes.append(_own_seconds(visitor))
    alike = [p for p in passes if len(p) == len(visits)]
    if not alike:  # the model does not call the same parts every time
        return tuple(replace(v, seconds=None) for v in visits)
    seconds = np.min(alike, axis=0).clip(min=0.0)
    for place in range(len(visits) - 1, -1, -1):  # a visit comes after the one that it was called from
        parent = visits[place].parent
        if parent is not None:
            seconds[parent] += seconds[place]
    return tuple(replace(v, seconds=float(s)) for v, s in zip(visits, seconds, strict=True))


def _own_seconds(visitor: Visitor) -> list[float]:
    """Without what a visit called: the least of these still add up."""
    own = [note.seconds for note in visitor.noted]
    for note in visitor.noted:
        if note.parent is not None:
            own[note.parent] -= note.seconds
    return own

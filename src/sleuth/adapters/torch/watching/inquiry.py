"""At the step where NaN or Inf was met: the forward is done again on a copy, from the inputs that are still there, to learn in
which op it was born and from which sample. The user's graph, weights, buffers and random states are left alone."""

import copy
import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters.torch.tracing import TooLong, Trace, call
from sleuth.adapters.torch.watching import suspects, taps
from sleuth.adapters.torch.watching.expression import Born
from sleuth.adapters.torch.watching.step_memory import Forward, Memory, View, detached, outputs_of
from sleuth.adapters.torch.watching.suspects import Accused
from sleuth.core.observation import Origin
from sleuth.core.tree import leaves

# A larger model is not copied in the middle of a training; `sleuth replay` can take its time.
MOST_BYTES = 1 << 30
SECONDS = 10.0


@dataclass
class Inquest:
    origin: Origin | None = None
    accused: list[Accused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    reproduced: bool | None = None  # None: it was not tried
    outputs: list[Any] = field(default_factory=list)  # of the calls that were done again


def inquire(
    model: nn.Module, memory: Memory, step: int, born: Born | None, others: list[torch.Tensor], backward: bool
) -> Inquest:
    """`born`: what the loss's graph told. `others`: further tensors of the batch. `backward`: the loss itself is finite."""
    found = Inquest()
    size = next((s for f in memory.forwards if (s := f.size)), None)
    targets = [t for heard in memory.losses for t in heard.tensors] + others
    if size is not None:
        found.accused = suspects.not_finite("its input holds", memory.inputs, size)
        found.accused = found.accused or suspects.not_finite("its target holds", targets, size)
    _replay(model, memory, step, found, size, backward)
    if found.origin is None and born is not None and not backward:
        nans, infs = int(torch.isnan(born.result).sum()), int(torch.isinf(born.result).sum())
        found.origin = Origin(step, born.operation, "forward", None, born.ranges, born.location, nans, infs)
    if size is None or found.accused:
        return found
    if born is not None and not backward:
        found.accused = suspects.not_finite(f"{born.operation} makes of it", [born.result], size)
    inputs = [("its largest input", t) for t in memory.inputs]
    found.accused = found.accused or suspects.outlier([*inputs, *(("its largest target", t) for t in targets)], size)
    return found


def _replay(model: nn.Module, memory: Memory, step: int, found: Inquest, size: int | None, backward: bool) -> None:
    reason = _why_not(model, memory)
    if reason is not None:
        found.remarks.append(f"the step was not done again: {reason}")
        return
    with unnoticed():
        try:
            twin = copy.deepcopy(model)
            trace = Trace(twin, SECONDS)
            _trace(twin, trace, memory, step, found, size, backward)
        except TooLong:
            found.remarks.append(f"the step was not done again to its end: it took more than {SECONDS:.0f} s")
        except Exception as error:
            found.remarks.append(f"the step could not be done again: {type(error).__name__}: {error}")


def _trace(
    twin: nn.Module, trace: Trace, memory: Memory, step: int, found: Inquest, size: int | None, backward: bool
) -> None:  # fmt: skip
    inputs: list[torch.Tensor] = []
    with torch.enable_grad(), trace.listener.listening():
        outputs = [run_again(twin, f, inputs) for f in memory.forwards]
        loss = loss_again(memory, outputs)
    found.reproduced = all(_same(f, o) for f, o in zip(memory.forwards, outputs, strict=True))
    if not found.reproduced:
        found.remarks.append("done again, the forward gave other values: what is said about its operations may be wrong")
    found.outputs = [detached(output) for output in outputs] if found.reproduced else []
    guilty = trace.guilty([outputs, loss])
    if guilty is not None:
        op, ranges = guilty
        made = trace.tensors(op)
        nans, infs = (sum(int(f(t).sum()) for t in made) for f in (torch.isnan, torch.isinf))
        found.origin = Origin(step, op.name, "forward", op.layer or None, ranges, op.location, nans, infs)
        if size is not None and not found.accused:
            found.accused = suspects.not_finite(f"{op.name} makes of it", made, size)
    if size is not None and not found.accused:
        found.accused = suspects.not_finite("the model's output for it holds", [t for _, t in leaves(outputs, _is_tensor)], size)
    if backward and loss is not None:
        _trace_back(twin, trace, loss, inputs, step, found, size)


def _trace_back(
    twin: nn.Module, trace: Trace, loss: torch.Tensor, inputs: list[torch.Tensor], step: int, found: Inquest, size: int | None
) -> None:
    gradients = trace.gradients(loss, [*inputs, *(p for p in twin.parameters() if p.requires_grad)])
    if trace.born_backward is not None:
        op, _ = trace.born_backward
        given = [t for _, t in leaves([list(op.args), dict(op.kwargs)], _is_tensor) if t.is_floating_point()]
        ranges = tuple((float(t.min()), float(t.max())) for t in given if t.numel())
        found.origin = Origin(step, op.name, "backward", op.layer or None, ranges, op.location)
    if size is not None and not found.accused:
        of_inputs = [g for g in gradients[: len(inputs)] if g is not None]
        found.accused = suspects.not_finite("its gradient holds", of_inputs, size)


def run_again(model: nn.Module, forward: Forward, inputs: list[torch.Tensor]) -> Any:
    """With the random state that the call began with. Floating inputs are copied, and collected as leaves of a new graph."""
    if forward.random is not None:
        torch.set_rng_state(forward.random)
    args, kwargs = detached(forward.args), detached(dict(forward.kwargs))
    for _, tensor in leaves([list(args), kwargs], _is_tensor):
        if tensor.is_floating_point() and not tensor.is_sparse:
            inputs.append(tensor.requires_grad_())
    context = torch.autocast(*forward.autocast) if forward.autocast is not None else ExitStack()
    with context:
        return call(model, args, kwargs)


def loss_again(memory: Memory, outputs: list[Any]) -> torch.Tensor | None:
    """What went backward, as far as it was heard: an output, or the sum of what the losses return. None where something was
    computed in between."""
    if isinstance(memory.root, View):
        return found_again(memory.root, outputs)
    heard = memory.losses if memory.root is None else [memory.losses[memory.root]]
    if not heard or not all(h.can_be_repeated for h in heard):
        return None
    total: Any = 0
    for one in heard:
        args = [found_again(a, outputs) for a in one.args]
        kwargs = {key: found_again(a, outputs) for key, a in one.kwargs.items()}
        value = getattr(functional, one.name)(*args, **kwargs)
        total = total + (value if value.dim() == 0 else value.mean())
    return total if total.requires_grad else None


def found_again(thing: Any, outputs: list[Any]) -> Any:
    if not isinstance(thing, View):
        return thing
    output = dict(leaves(outputs[thing.call], _is_tensor))[thing.path]
    if thing.size is None:
        return output
    return output.as_strided(thing.size, thing.stride, output.storage_offset() + thing.offset)


def _why_not(model: nn.Module, memory: Memory) -> str | None:
    if not memory.forwards:
        return "no call of the model was heard"
    if memory.cut:
        return "the model was called too often before the backward"
    if not all(f.unchanged for f in memory.forwards):
        return "an input was changed in place after the model was called"
    size = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
    return f"the model is too large to be copied while it trains ({size >> 20} MiB)" if size > MOST_BYTES else None


def _same(forward: Forward, output: Any) -> bool:
    """As far as the first output is still there to compare with."""
    again: Mapping[str, torch.Tensor] = dict(leaves(output, _is_tensor))
    with torch.no_grad():
        return all(path in again and equal_bits(again[path], tensor) for path, tensor in outputs_of(forward))


def equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    same = one.detach() == other.detach()
    return bool((same | (torch.isnan(one) & torch.isnan(other)) if one.is_floating_point() else same).all())


@contextmanager
def unnoticed() -> Iterator[None]:
    """No watch hears it, random states are put back, and what torch warns about was said at the first time."""
    python, numpy = random.getstate(), np.random.get_state()
    listeners = taps.LISTENERS[:]
    taps.LISTENERS.clear()
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            taps.LISTENERS.extend(listeners)
            random.setstate(python)
            np.random.set_state(numpy)


def _is_tensor(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor)

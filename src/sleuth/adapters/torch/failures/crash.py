"""An exception that ended the user's loop or script: everything that is known of it, watched or not."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.copying import deep_copy
from sleuth.adapters.torch.failures import leaving
from sleuth.adapters.torch.failures.calls import Again, called_again, model_called
from sleuth.adapters.torch.failures.changed import name_what_changed
from sleuth.adapters.torch.failures.checkpoint import read_misfit
from sleuth.adapters.torch.failures.indexing import read_out_of_range
from sleuth.adapters.torch.failures.killed import explain_killed, raised_in
from sleuth.adapters.torch.failures.lived_on import name_what_lived_on
from sleuth.adapters.torch.failures.memory import is_out_of_memory, optimisers_alive, read_out_of_memory
from sleuth.adapters.torch.failures.no_graph import describe_loss, name_the_cut
from sleuth.adapters.torch.failures.scene import read_scene
from sleuth.adapters.torch.failures.source import functions
from sleuth.adapters.torch.place import TORCH
from sleuth.adapters.torch.tracing import call
from sleuth.adapters.torch.watching.rerun_nonfinite import loss_again, unnoticed, why_not
from sleuth.adapters.torch.watching.step_memory import Forward, Memory, detached
from sleuth.core.observation import Crash, Failure, Observation, OutOfRange
from sleuth.core.runtime.place import innermost

LONGEST = 300
COLOURS = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Known:
    """What a watch knows beside the exception."""

    model: nn.Module | None = None
    memory: Memory | None = None  # of the step that was going on
    in_backward: bool = False
    steps: int = 0


def explain_crash(error: BaseException, known: Known) -> list[Observation]:
    """What is known beside the plain fact, which is always told."""
    mine = functions(error.__traceback__)
    model = known.model or _running(error) or model_called(mine)
    phase = "backward" if known.in_backward else leaving.phase_of(error.__traceback__, model or nn.Module())
    found: list[Observation] = []
    try:
        with unnoticed():
            found = list(_explained(error, known, model, phase))
    except Exception as own:  # a reading that fails must not hide what it reads
        found = [o for o in found if isinstance(o, Failure)]
        del own
    return [*found, _crash(error, known.steps, phase)]


def _explained(error: BaseException, known: Known, model: nn.Module | None, phase: str | None) -> Iterator[Observation]:
    if (misfit := read_misfit(error)) is not None:
        yield misfit
        return
    if is_out_of_memory(error):
        layer = _layer(error, model)
        yield read_out_of_memory(error, model, optimisers_alive(), known.steps, phase, layer)
        return
    if (killed := explain_killed(error)) is not None:
        at = innermost(error.__traceback__, (TORCH,))
        told = (killed.kind, None, killed.expected, killed.got, killed.advice)
        yield Failure("data", type(error).__name__, str(error), *told, location=at)
        return
    if not isinstance(error, Exception):
        return
    outside = read_out_of_range(error, model)
    failure = leaving.explain_leaving(error, model or nn.Module(), in_backward=known.in_backward)
    if outside is not None:
        yield outside
        failure = _looked_up(failure or Failure(phase or "script", type(error).__name__, str(error), "index"), outside)
    elif failure is not None and failure.phase == "backward":
        failure = _gone_backward(failure, error, known, model)
    if failure is not None:
        yield failure


def _gone_backward(failure: Failure, error: BaseException, known: Known, model: nn.Module | None) -> Failure:
    off = not torch.is_grad_enabled()
    text, again = failure.message, _again(known.model, known.memory, called_again(functions(error.__traceback__)))
    with torch.enable_grad():
        if "modified by an inplace operation" in text:
            return name_what_changed(failure, error, model, again)
        if "graph a second time" in text:
            return name_what_lived_on(failure, error, model)
        if "does not require grad" in text:
            return name_the_cut(failure, error, model, again, off)
        if "only for scalar outputs" in text or "only for" in text:
            return describe_loss(failure, error)
    return failure


def _looked_up(failure: Failure, outside: OutOfRange) -> Failure:
    """What the messages call “self” or a dimension, in the user's names."""
    index = f"{outside.index} holds {outside.wrong}" if outside.index else f"index {outside.wrong}"
    many = f" ({outside.outside} of {outside.asked:,} places are outside)" if outside.outside else ""
    expected = f"places from 0 to {outside.size - 1} on axis {outside.axis} of {outside.table}"
    advice = failure.advice
    if outside.kind == "position":
        expected = f"at most {outside.size} positions in {outside.table}"
        advice = (
            f"cut the sequence to {outside.size}, x[:, :{outside.size}], or give {outside.table} as many rows as the longest "
            f"sequence has steps ({outside.highest + 1})"
        )
        return replace(failure, kind="index", expected=expected, got=f"a sequence of {outside.highest + 1}", advice=advice)
    if outside.kind == "index" or advice is None:
        advice = (
            f"find out where {outside.index or 'the index'} gets {outside.wrong}: {outside.table} has {outside.size} entries on "
            f"axis {outside.axis}, counted from 0"
        )
    return replace(
        failure,
        kind="index",
        expected=expected if outside.kind == "index" else failure.expected or expected,
        got=f"{index}{many}",
        advice=advice,
        location=outside.location if outside.raised else failure.location or outside.location,
        raised=outside.raised,
    )


def _again(model: nn.Module | None, memory: Memory | None, otherwise: Again) -> Again:
    """A copy of the model, and what does the step's calls again on it; None where that cannot be."""

    def build() -> tuple[nn.Module, Callable[[], Any]] | None:
        if model is None or memory is None or why_not(model, memory) is not None:
            return otherwise()
        try:
            twin = deep_copy(model)
        except Exception:  # a tensor with a graph that the model keeps cannot be copied
            return None

        def run() -> Any:
            outputs = [_call_again(twin, forward) for forward in memory.forwards]
            try:
                return [outputs, loss_again(memory, outputs)]
            except Exception:
                return [outputs, None]

        return twin, run

    return build


def _call_again(twin: nn.Module, forward: Forward) -> Any:
    if forward.random is not None:
        torch.set_rng_state(forward.random)
    with torch.enable_grad(), torch.autocast(*forward.autocast) if forward.autocast is not None else torch.enable_grad():
        return call(twin, detached(forward.args), detached(dict(forward.kwargs)))


def _running(error: BaseException) -> nn.Module | None:
    """The outermost module whose forward the exception came out of; a loss is none."""
    for frame in _frames(error):
        owner = frame.f_locals.get("self")
        inside = frame.f_code.co_name in ("forward", "_call_impl", "_wrapped_call_impl")
        if inside and isinstance(owner, nn.Module) and not isinstance(owner, nn.modules.loss._Loss):
            return owner
    return None


def _layer(error: BaseException, model: nn.Module | None) -> str | None:
    if model is None or not isinstance(error, Exception):
        return None
    return read_scene(error, model).path or None


def _crash(error: BaseException, steps: int, phase: str | None) -> Crash:
    passed_on = raised_in(error)
    location = innermost(error.__traceback__, (TORCH,))
    text = str(error).strip()
    message = COLOURS.sub("", text.splitlines()[0]) if text else ""
    if passed_on is not None:
        location, message = passed_on[0] or location, passed_on[1]
    return Crash(steps, type(error).__name__, message[:LONGEST], phase, location)


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next

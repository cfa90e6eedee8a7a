"""At the step where NaN or Inf was met: the step is done again on a copy, from the inputs that are still there, to learn in
which op it was born and from which sample. The user's graph, weights, buffers and random states are left alone."""

import random
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth.adapters.torch.tracing import TooLong
from sleuth.adapters.torch.watching import patches, suspect_samples
from sleuth.adapters.torch.watching.loss_expression import Born
from sleuth.adapters.torch.watching.origin import to_observations
from sleuth.adapters.torch.watching.origin.guessing import guess
from sleuth.adapters.torch.watching.origin.judging import Case, Verdict
from sleuth.adapters.torch.watching.origin.rerun_step import Again, Asked, loss_again
from sleuth.adapters.torch.watching.origin.tape import Tape
from sleuth.adapters.torch.watching.step_memory import Forward, Memory, detached, outputs_of
from sleuth.adapters.torch.watching.suspect_samples import Accused
from sleuth.core.location import Location
from sleuth.core.observation import NotFinite, Origin
from sleuth.core.runtime.tree import leaves

__all__ = ["Inquest", "Known", "inquire", "loss_again", "unnoticed", "why_not"]

# A larger model is not copied in the middle of a training; `sleuth replay` can take its time.
MOST_BYTES = 1 << 30
# What taking the step apart may cost: so long, or so many steps of this training.
SECONDS = 2.0
STEPS = 50


@dataclass(frozen=True)
class Known:
    """What the watch knows of the step."""

    tapes: Sequence[Tape] = ()  # how the loss is computed from what the model returns
    loss: float | None = None
    line: Location | None = None  # that calls the model
    batch: int | None = None  # in its pass over the data
    step_seconds: float = 0.0
    root: torch.Tensor | None = None  # what went backward, where somebody still holds it

    @property
    def seconds(self) -> float:
        return max(SECONDS, STEPS * self.step_seconds)


@dataclass
class Inquest:
    origin: Origin | None = None
    accused: list[Accused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    reproduced: bool | None = None  # None: it was not tried
    outputs: list[Any] = field(default_factory=list)  # of the calls that were done again
    causes: list[NotFinite] = field(default_factory=list)  # what came in like that: an input, a target, a parameter


@dataclass
class Search:
    """What one inquiry is about."""

    model: nn.Module
    memory: Memory
    step: int
    others: list[torch.Tensor]
    backward: bool
    known: Known
    found: Inquest = field(default_factory=Inquest)

    @property
    def size(self) -> int | None:
        return next((s for f in self.memory.forwards if (s := f.size)), None)

    @property
    def targets(self) -> list[torch.Tensor]:
        return [t for heard in self.memory.losses for t in heard.tensors] + self.others


def inquire(
    model: nn.Module,
    memory: Memory,
    step: int,
    born: Born | None,
    others: list[torch.Tensor],
    backward: bool,
    known: Known | None = None,
) -> Inquest:
    """`born`: what the loss's graph told. `others`: further tensors of the batch. `backward`: the loss itself is finite."""
    search = Search(model, memory, step, others, backward, known or Known())
    found = search.found
    verdict = _replay(search)
    if found.origin is None and born is not None and not backward and verdict is None:
        nans, infs = int(torch.isnan(born.result).sum()), int(torch.isinf(born.result).sum())
        found.origin = Origin(step, born.operation, "forward", None, born.ranges, born.location, nans, infs, outside=True)
        if search.size is not None:
            found.accused = suspect_samples.not_finite(f"{born.operation} makes of it", [born.result], search.size)
    if backward and found.origin is None and found.reproduced:
        found.origin = guess(step, search.known.root, memory)
        if found.origin is None:
            found.remarks.append("done again, the gradient is finite: an earlier backward of this step may be to blame")
    if found.origin is None and not found.causes:
        # A model that was done again and is not to blame has coped with what is missing in its inputs.
        inputs = [t for t in memory.inputs if not t.requires_grad] if found.reproduced is None else []
        found.causes = to_observations.causes(step, inputs, search.targets, model)
    _accuse(search)
    return found


def _accuse(search: Search) -> None:
    found, size = search.found, search.size
    if size is None:
        return
    blamed = {cause.what for cause in found.causes}
    if not found.accused and "input" in blamed:
        found.accused = suspect_samples.not_finite("its input holds", search.memory.inputs, size)
    if not found.accused and "target" in blamed:
        found.accused = suspect_samples.not_finite("its target holds", search.targets, size)
    if found.accused or "parameter" in blamed:
        return
    inputs = [("its largest input", t) for t in search.memory.inputs]
    found.accused = suspect_samples.outlier([*inputs, *(("its largest target", t) for t in search.targets)], size)


def _replay(search: Search) -> Verdict | None:
    reason = why_not(search.model, search.memory)
    if reason is not None:
        search.found.remarks.append(f"the step was not done again: {reason}")
        return None
    known = search.known
    ends = time.monotonic() + known.seconds
    with unnoticed():
        try:
            asked = Asked(
                search.model, search.memory, search.others, known.tapes, known.loss, search.backward, ends, known.line
            )  # fmt: skip
            again = Again(asked)
            verdict = again.run()
            _weigh(search, again, verdict)
            return verdict
        except TooLong:
            search.found.remarks.append(f"the step was not done again to its end: it took more than {known.seconds:.0f} s")
        except Exception as error:
            search.found.remarks.append(f"the step could not be done again: {type(error).__name__}: {error}")
    return None


def _weigh(search: Search, again: Again, verdict: Verdict | None) -> None:
    found = search.found
    found.reproduced = all(_same(f, o) for f, o in zip(search.memory.forwards, again.outputs, strict=True))
    if not found.reproduced:
        found.remarks.append("done again, the forward gave other values: what is said about its operations may be wrong")
    found.outputs = [detached(output) for output in again.outputs] if found.reproduced else []
    if verdict is not None and verdict.deed is not None:
        case = Case(again.witness.deeds)
        direction = "backward" if search.backward else "forward"
        certain = found.reproduced and (again.faithful or not verdict.deed.outside)
        found.origin = to_observations.origin(search.step, case, verdict, direction, certain, search.known.batch)
    elif verdict is not None and verdict.leaf is not None:
        found.causes = to_observations.cause_of(search.step, verdict.leaf, again, search.memory.inputs, search.targets)
    if search.size is not None and verdict is not None and verdict.deed is not None:
        word = (verdict.taken_by or verdict.deed).name
        said = f"the gradient of {word} for it holds" if search.backward else f"{word} makes of it"
        found.accused = suspect_samples.not_finite(said, verdict.made, search.size)
    if search.size is not None and search.backward and not found.accused:
        found.accused = suspect_samples.not_finite(
            "its gradient holds", [g for g in again.gradients if g is not None], search.size
        )


def why_not(model: nn.Module, memory: Memory) -> str | None:
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
    listeners = patches.LISTENERS[:]
    patches.LISTENERS.clear()
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            patches.LISTENERS.extend(listeners)
            random.setstate(python)
            np.random.set_state(numpy)


def _is_tensor(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor)

"""A verdict as observations."""

from collections.abc import Sequence

import torch
from torch import nn

from sleuth.adapters.torch.measuring import measure
from sleuth.adapters.torch.watching.origin.judging import Case, Verdict
from sleuth.adapters.torch.watching.origin.rerun_step import Again
from sleuth.adapters.torch.watching.origin.witness import State
from sleuth.core.observation import Frame, NotFinite, Observation, Origin, Role

MOST_MAKERS = 4


def origin(step: int, case: Case, verdict: Verdict, direction: str, certain: bool, batch: int | None) -> Origin:
    deed = verdict.deed
    assert deed is not None
    broken = case.relevant(deed)
    makers = [maker.name for maker in case.makers(deed, broken)][:MOST_MAKERS] if broken is not None else []
    floats = [s for s in deed.given if "float" in s.dtype] or deed.given
    return Origin(
        step,
        deed.name,
        direction,
        deed.layer or None,
        tuple((s.low, s.high) for s in floats),
        deed.location,
        sum(int(torch.isnan(t).sum()) for t in verdict.made),
        sum(int(torch.isinf(t).sum()) for t in verdict.made),
        deed.made[0].dtype,
        deed.constants,
        tuple(makers),
        None if verdict.taken_by is None else verdict.taken_by.name,
        verdict.unused,
        deed.outside,
        certain,
        batch,
    )


def cause_of(
    step: int, leaf: State, again: Again, inputs: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]
) -> list[NotFinite]:
    """What came in like that, by what it is."""
    for name, tensor in again.named().items():
        if id(tensor) == leaf.key:
            return [NotFinite(step, "parameter", name, leaf.nans, leaf.infs)]
    given = [t for tensors in again.inputs for t in tensors]
    what = "input" if any(id(t) == leaf.key for t in given) else "target"
    if what == "target" and any(torch.is_floating_point(t) and _bad(t) and tuple(t.shape) == leaf.shape for t in inputs):
        what = "input"
    return [NotFinite(step, what, None, leaf.nans, leaf.infs)]


def causes(step: int, inputs: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], model: nn.Module) -> list[NotFinite]:
    """Where the step was not done again: whatever is not finite of what came in."""
    named = [("parameter", name, t) for name, t in (*model.named_parameters(), *model.named_buffers())]
    given = [("input", None, t) for t in inputs] + [("target", None, t) for t in targets]
    found = [(what, name, t) for what, name, t in (*given, *named) if _bad(t)]
    with torch.no_grad():
        return [NotFinite(step, w, n, int(torch.isnan(t).sum()), int(torch.isinf(t).sum())) for w, n, t in found[:1]]


def weighed(model: nn.Module, step: int) -> list[Observation]:
    """The weights with which the step began that went wrong."""
    named = [(name, p.detach()) for name, p in model.named_parameters() if p.requires_grad]
    if not named:
        return []
    return [Frame(step, Role.WEIGHT, tuple(name for name, _ in named), measure([p for _, p in named]))]


def _bad(tensor: torch.Tensor) -> bool:
    sound = tensor.is_meta or tensor.is_sparse or not tensor.is_floating_point()
    return not sound and not bool(torch.isfinite(tensor.detach()).all())

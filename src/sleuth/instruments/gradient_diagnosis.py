"""What gradients say, in words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sleuth.instruments.gradients import ParameterGradient

# Of the first weights' gradient to the last ones': under plain SGD the first layers stand still, or run away.
FADED = 1e-4
GROWN = 1e4
NAMED = 3

WORDS = {
    "missing": "The loss does not reach {}: look for a part that is not called, detach(), .item() or torch.no_grad().",
    "nan": "NaN in the gradient of {}: look for log(0), 0/0 and sqrt(0); sleuth.examine finds the place.",
    "inf": "Inf in the gradient of {}: clip it, torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
    "zero": "The gradient of {} is zero throughout: its units may be dead, see sleuth.dead_units, or it is multiplied by zero.",
    "large": "The gradient's norm is above {large:g} in {}: clip it, or lower the learning rate.",
    "small": "The gradient's norm is below {small:g} in {}: it fades on its way; add normalisation or skip connections.",
}


def diagnose(found: "tuple[ParameterGradient, ...]", large: float, small: float) -> Iterator[str]:
    by_state = {state: [p.path for p in found if p.state == state] for state in WORDS}
    if len(by_state["missing"]) == len(found):
        yield "No parameter has a gradient: call loss.backward() first, and look for detach(), .data or torch.no_grad()."
        return
    for state, paths in by_state.items():
        if paths:
            yield WORDS[state].format(_named(paths), large=large, small=small)
    yield from _course(found)


def _course(found: "tuple[ParameterGradient, ...]") -> Iterator[str]:
    """Along the depth, by the sizes of single values: norms grow with the number of them."""
    weights = [p for p in found if p.state not in ("missing", "nan", "inf", "zero") and len(p.shape) > 1]
    if len(weights) < 3:
        return
    first, last = weights[0], weights[-1]
    ratio = (first.mean or 0.0) / (last.mean or 1.0)
    if ratio < FADED:
        yield f"Gradients fade with depth: {first.path} gets {ratio:.1e} of what {last.path} gets. Add normalisation or skips."
    elif ratio > GROWN:
        yield f"Gradients grow with depth: {first.path} gets {ratio:.1e} times what {last.path} gets. Scale the weights down."


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more

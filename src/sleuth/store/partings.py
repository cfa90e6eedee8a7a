"""Where two runs part, in sentences: in their losses, and in the tensors that both were looked at."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sleuth.core.observation import Role
from sleuth.core.recording.recording import Curve
from sleuth.store.parting import Parting, part

# A running mean over this share of the steps shows the course below the noise; fewer than the least are all noise.
WINDOW_SHARE, LEAST_WINDOW = 1 / 50, 5
# Of two means that differ only by chance, one in a thousand is farther apart than this many of their standard errors.
APART = 3.3
# The middle of the distances between neighbours of normal noise, in its standard deviations.
MIDDLE_DISTANCE = 0.954
ROLES = {
    Role.ACTIVATION: "the outputs of the layers",
    Role.GRADIENT: "the gradients",
    Role.UPDATE: "the updates",
    Role.WEIGHT: "the weights",
}
LOSSES = ("loss", "val_loss")


class Told(NamedTuple):
    headline: str
    sentences: list[str]


def tell(curves: tuple[Mapping[str, Curve], Mapping[str, Curve]], files: tuple[Path, Path]) -> Told:
    tensors = {role: found for role in ROLES if (found := part(*files, role)) is not None}
    shared = {name: on_shared_steps(curves[0][name], curves[1][name]) for name in LOSSES if all(name in c for c in curves)}
    sentences = [text for name, values in shared.items() for text in _of_curve(name, *values)]
    sentences += [_of_tensors(role, found) for role, found in tensors.items()]
    return Told(_headline(shared, tensors), sentences)


def on_shared_steps(first: Curve, other: Curve) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    steps, mine, yours = np.intersect1d(first.steps, other.steps, return_indices=True)
    return steps, first.values[mine], other.values[yours]


def first_difference(mine: np.ndarray, yours: np.ndarray) -> int | None:
    different = (mine != yours) & ~(np.isnan(mine) & np.isnan(yours))
    return int(different.argmax()) if different.any() else None


def clearly_apart(mine: np.ndarray, yours: np.ndarray) -> int | None:
    """From where on the running means stay farther apart than chance allows, up to the end."""
    broken = np.isnan(mine) != np.isnan(yours)
    if broken[-1:].any():
        return int(broken.argmax())
    places = np.flatnonzero(np.isfinite(mine) & np.isfinite(yours))
    window = max(LEAST_WINDOW, int(len(places) * WINDOW_SHARE))
    if len(places) <= window:
        return None
    gap = mine[places] - yours[places]
    means = np.convolve(gap, np.ones(window) / window, mode="valid")
    # From one step to the next the course hardly moves: what moves is noise.
    noise = float(np.median(np.abs(np.diff(gap)))) / MIDDLE_DISTANCE
    together = np.flatnonzero(np.abs(means) <= APART * noise / np.sqrt(window))
    begin = int(together[-1]) + 1 if len(together) else 0
    return None if begin >= len(means) else int(places[begin])


def _headline(shared: Mapping[str, tuple[np.ndarray, ...]], tensors: Mapping[Role, Parting]) -> str:
    order = [Role.ACTIVATION, *shared, Role.GRADIENT, Role.UPDATE, Role.WEIGHT]  # of a step, up to its end
    found = [(at.step, order.index(role), f"in {ROLES[role]}, first in {at.path}") for role, at in tensors.items() if at.path]
    for name, (steps, mine, yours) in shared.items():
        if (place := first_difference(mine, yours)) is not None:
            found.append((int(steps[place]), order.index(name), f"in {name}"))
    if found:
        step, _, where = min(found)
        return f"They part at step {step:,}: {where}."
    if not any(len(steps) for steps, *_ in shared.values()) and not tensors:
        return "They have no step in common, so they cannot be compared."
    return "They do not part: whatever both runs recorded is the same to the last bit."


def _of_curve(name: str, steps: np.ndarray, mine: np.ndarray, yours: np.ndarray) -> Iterator[str]:
    if not len(steps):
        yield f"{name} was never seen at the same step."
        return
    place = first_difference(mine, yours)
    if place is None:
        yield f"{name} is the same to the last bit at all {len(steps):,} steps that both have."
        return
    yield f"{name} differs first at step {steps[place]:,}: {_value(mine[place])} and {_value(yours[place])}."
    clear = clearly_apart(mine, yours)
    if clear is None:
        yield f"At the end, {name} is not farther apart than its noise."
    elif clear > place:
        yield f"From about step {steps[clear]:,} to the end, {name} is farther apart than its noise."


def _of_tensors(role: Role, found: Parting) -> str:
    what = ROLES[role].capitalize()
    if found.path is None:
        return f"{what} are the same at every step at which both were looked at, up to step {found.step:,}."
    return f"{what} differ first at step {found.step:,}, in {found.path}."


def _value(value: float) -> str:
    """All digits: two values that differ in the last one must not look alike."""
    return "not finite" if np.isnan(value) else repr(float(value))

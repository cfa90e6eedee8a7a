"""What a wrong gradient is in place of the right one: suppositions, each tried along the same random directions.

The numerical slope of what is supposed either equals the analytic one in every direction, to many digits, or it does not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bypass, Dissects
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts
from sleuth.core.trial import GradientError, GradientTerm
from sleuth.probes.lab.changed_inputs import first_samples
from sleuth.probes.lab.loss_around_weights import Surface, direction_in
from sleuth.probes.lab.probe import Lab

# Of the larger one: what agrees so well in several random directions is the same.
SAME = 1e-5
DIRECTIONS = 4
# Relative to the weights: central differences in float64 are best there for a smooth loss.
STEP = 1e-6
# Beyond so many wrong parameters the rest has the same cause.
MOST_EXPLAINED = 12


@dataclass(frozen=True)
class Line:
    """One direction through one parameter, and the analytic slope along it."""

    path: str
    direction: np.ndarray
    analytic: float


def explained(
    lab: Lab, surface: Surface, found: list[GradientError], wrong: Callable[[GradientError], bool]
) -> list[GradientError]:
    """The same, where those that are wrong know what they are and where they are made."""
    if not isinstance(lab.adapter, Dissects):
        return found
    left = MOST_EXPLAINED
    result = []
    for error in reversed(found):  # from the loss backwards, as gradients flow
        if wrong(error) and left:
            lab.tick()
            left -= 1
            error = replace(error, term=_term(lab, surface, error.path))
        result.append(error)
    right = {error.path for error in found if not wrong(error)}
    told = [error for error in result if error.path not in right][:MOST_EXPLAINED]
    places = {error.path: _place(lab.adapter, surface, error, right, alone=len(told) < 2) for error in told}
    return [replace(error, location=places.get(error.path)) for error in reversed(result)]


def _term(lab: Lab, surface: Surface, path: str) -> GradientTerm | None:
    lines = [_line(surface, path) for _ in range(DIRECTIONS)]
    return next((t for t in _suppositions(lab, surface, path, lines) if t is not None), None)


def _place(adapter: Dissects, surface: Surface, error: GradientError, right: set[str], *, alone: bool) -> Location | None:
    """Where what flows back is wrong, nothing that is made from it is right; a gradient that is wrong alone was made wrongly."""
    surface.place({})
    siblings = adapter.siblings(surface.bench, error.path)
    flows = bool(siblings) and right.isdisjoint(siblings) and not alone
    activation = error.term is not None and error.term.kind == "activation"
    surface.place({})
    return adapter.backward_line(surface.bench, error.path, upstream=activation or flows)


def _line(surface: Surface, path: str) -> Line:
    direction = direction_in(surface, path)
    return Line(path, direction, float(np.vdot(surface.gradients[path], direction)))


def _suppositions(lab: Lab, surface: Surface, path: str, lines: list[Line]) -> Iterator[GradientTerm | None]:
    if not surface.gradients[path].any():
        yield GradientTerm("nothing")
        return
    right = [_slope(surface, line, lambda: surface.bench.loss(surface.batch)) for line in lines]
    yield _factor(lab, surface, path, lines, right)
    yield _transposed(surface, path, lines, right)
    yield _everything(surface, path)
    yield _decay(surface, path, lines, right)
    assert isinstance(lab.adapter, Dissects)
    surface.place({})
    for bypass in _bypasses(lab.adapter, surface):
        slopes = [_slope(surface, line, bypass.loss) for line in lines]
        if agree([line.analytic for line in lines], slopes):
            yield GradientTerm("activation", name=bypass.name)
    yield _one_sample(lab, surface, lines)


def _bypasses(adapter: Dissects, surface: Surface) -> list[Bypass]:
    try:
        return adapter.bypasses(surface.bench, surface.batch)
    except Exception:  # the user's code may not take an array that is followed
        return []


def _slope(surface: Surface, line: Line, loss: Callable[[], float]) -> float:
    values = []
    for sign in (1, -1):
        surface.place({line.path: surface.weights[line.path] + sign * STEP * line.direction})
        values.append(loss())
    return (values[0] - values[1]) / (2 * STEP)


def agree(one: list[float], other: list[float]) -> bool:
    scale = max(map(abs, (*one, *other)), default=0.0)
    return scale > 0 and bool(np.allclose(one, other, rtol=0, atol=SAME * scale))


def _factor(lab: Lab, surface: Surface, path: str, lines: list[Line], right: list[float]) -> GradientTerm | None:
    analytic = [line.analytic for line in lines]
    size = float(np.dot(right, right))
    factor = float(np.dot(analytic, right)) / size if size else 0.0
    if factor == 0.0 or not agree(analytic, [factor * slope for slope in right]):
        return None
    samples, rows = sample_count(lab, surface.batch), sample_count(lab, lab.batch)
    for kind, expected in (("batch", samples), ("mean", 1 / max(samples, 1))):
        if samples > 1 and np.isclose(abs(factor), expected, rtol=1e-4) and _follows_the_batch(lab, surface, path, factor, kind):
            return GradientTerm(kind, np.sign(factor) * (rows if kind == "batch" else 1 / rows), samples=rows)
    return GradientTerm("factor", factor, samples=rows)


def _follows_the_batch(lab: Lab, surface: Surface, path: str, factor: float, kind: str) -> bool:
    """A factor of eight for eight samples may be chance; for half of them it must be half as large."""
    half = sample_count(lab, surface.batch) // 2
    batch = first_samples(lab, surface.batch, half)
    surface.place({})
    gradient = lab.adapter.values(surface.bench.gradients(batch).by_path[path]).astype(np.float64)
    line = Line(path, direction := direction_in(surface, path), float(np.vdot(gradient, direction)))
    slope = _slope(surface, line, lambda: surface.bench.loss(batch))
    expected = np.sign(factor) * (half if kind == "batch" else 1 / half)
    return bool(np.isclose(line.analytic, expected * slope, rtol=1e-4))


def _transposed(surface: Surface, path: str, lines: list[Line], right: list[float]) -> GradientTerm | None:
    gradient = surface.gradients[path]
    if gradient.ndim != 2 or gradient.shape[0] != gradient.shape[1]:
        return None
    return GradientTerm("transposed") if agree([float(np.vdot(gradient.T, line.direction)) for line in lines], right) else None


def _everything(surface: Surface, path: str) -> GradientTerm | None:
    """The sum of the right gradient, for every entry: it was summed over the units as well."""
    gradient = surface.gradients[path]
    first = float(gradient.reshape(-1)[0]) if gradient.size > 1 else 0.0
    if first == 0.0 or not np.allclose(gradient, first, rtol=SAME, atol=0):
        return None
    along = Line(path, np.ones(gradient.shape), first)
    slope = _slope(surface, along, lambda: surface.bench.loss(surface.batch))
    return GradientTerm("everything") if agree([first], [slope]) else None


def _decay(surface: Surface, path: str, lines: list[Line], right: list[float]) -> GradientTerm | None:
    """A gradient with weight decay in it, beside a loss without."""
    rest = [line.analytic - slope for line, slope in zip(lines, right, strict=True)]
    weights = [float(np.vdot(surface.weights[path], line.direction)) for line in lines]
    size = float(np.dot(weights, weights))
    factor = float(np.dot(rest, weights)) / size if size else 0.0
    scale = max(abs(line.analytic) for line in lines)
    same = np.allclose(rest, [factor * w for w in weights], rtol=1e-3, atol=SAME * scale)
    return GradientTerm("decay", factor) if factor > 0 and same else None


def _one_sample(lab: Lab, surface: Surface, lines: list[Line]) -> GradientTerm | None:
    """Of a mean over the batch: the part of its first sample, or of its last."""
    samples = sample_count(lab, surface.batch)
    if samples < 2:
        return None
    for name, cut in (("first", first_samples), ("last", last_samples)):
        batch = cut(lab, surface.batch, 1)
        try:
            slopes = [_slope(surface, line, lambda batch=batch: surface.bench.loss(batch)) / samples for line in lines]  # type: ignore[misc]
        except Exception:  # the model may want more than one
            return None
        if agree([line.analytic for line in lines], slopes):
            return GradientTerm("sample", name=name, samples=sample_count(lab, lab.batch))
    return None


def sample_count(lab: Lab, batch: Parts) -> int:
    return next((int(a.shape[0]) for _, a in leaves(batch.inputs, lab.adapter.is_array) if len(a.shape)), 0)


def last_samples(lab: Lab, batch: Parts, count: int) -> Parts:
    size = sample_count(lab, batch)

    def cut(tree: Any) -> Any:
        return map_arrays(tree, lambda a: a[size - count :] if len(a.shape) and a.shape[0] == size else a, lab.adapter.is_array)

    return Parts(cut(batch.inputs), cut(batch.target), cut(batch.raw))

"""Whether a hand-written backward remembers: gradients that add up, and gradients of an earlier batch."""

from collections.abc import Mapping

import numpy as np

from sleuth.core.contract.adapter import Dissects
from sleuth.core.subject import Parts
from sleuth.probes.lab.changed_inputs import first_samples
from sleuth.probes.lab.loss_around_weights import Surface
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.gradient_terms import last_samples, sample_count


def repeated(lab: Lab, surface: Surface) -> str:
    """What a second and third backward of the same batch, and one of another batch before it, do to the gradient."""
    if not isinstance(lab.adapter, Dissects):
        return ""
    try:
        surface.place({})
        one, two, three = (_again(lab, surface) for _ in range(3))
        return "accumulates" if _grows(one, two, three) else _stale(lab, surface)
    except Exception:  # a step that cannot be taken twice is told by others
        return ""
    finally:
        surface.place({})


def _again(lab: Lab, surface: Surface) -> Mapping[str, np.ndarray]:
    """The gradients of a whole step, after which the weights are as before: whatever resets gradients has had its turn."""
    found = _read(lab, surface, surface.batch)
    surface.bench.apply(surface.batch)
    for path, values in surface.weights.items():
        surface.bench.write(path, values)
    return found


def _read(lab: Lab, surface: Surface, batch: Parts) -> Mapping[str, np.ndarray]:
    made = surface.bench.gradients(batch).by_path
    return {path: lab.adapter.values(g).astype(np.float64).copy() for path, g in made.items() if g is not None}


def _grows(one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray], three: Mapping[str, np.ndarray]) -> bool:
    """By the same at each time, whatever was there before the first."""
    added = {path: two[path] - g for path, g in one.items()}
    same = _same(added, {path: g - two[path] for path, g in three.items()})
    return same and not _same(one, two) and any(np.abs(a).max(initial=0.0) > 0.1 * np.abs(two[p]).max() for p, a in added.items())


def _same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    largest = max((float(np.abs(g).max(initial=0.0)) for g in one.values()), default=0.0)
    return all(np.allclose(g, other[path], rtol=1e-4, atol=1e-7 * largest) for path, g in one.items())


def _stale(lab: Lab, surface: Surface) -> str:
    """Gradients of one half of the batch, after the other half and after itself."""
    half = sample_count(lab, surface.batch) // 2
    if half < 1:
        return ""
    mine, other = first_samples(lab, surface.batch, half), last_samples(lab, surface.batch, half)
    surface.place({})
    _read(lab, surface, other)
    after_other = _read(lab, surface, mine)
    again = _read(lab, surface, mine)
    surface.place({})
    alone = _read(lab, surface, mine)
    steady = _same(alone, _read(lab, surface, mine)) and _same(again, after_other)
    return "stale" if steady and not _same(alone, after_other) else ""

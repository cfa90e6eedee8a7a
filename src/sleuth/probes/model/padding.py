"""Asks whether the loss counts padding: do the model's answers at padded positions matter to it?"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Substitutes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Padding
from sleuth.probes.lab.answers import Exchange, places
from sleuth.probes.lab.one_batch import sample_count, take_rows
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.padded_positions import Padded, find_padding, find_padding_apart, pairs

# Batches in which padding is looked for, and values of one array: so many show whether lengths differ.
BATCHES = 16
MOST_VALUES = 2_000_000
DRAWS = 3
# Sums in another order differ by this much in float32.
ROUNDING = 1e-6
# Fewer positions leave nothing to compare.
FEWEST = 4


@probe(
    title="Asking whether the loss counts padding",
    stage=Stage.MODEL,
    rank=40,
    emits=(Padding,),
    needs=("forward", "loss"),
    share=0.05,
)
def padding(lab: Lab) -> Iterator[Observation]:
    batches = lab.train.batches[:BATCHES]
    sides = [(_values(lab, b.inputs), _values(lab, b.target)) for b in batches]
    if not any(targets for _, targets in sides):
        raise Unsupported("no target could be told from the inputs")
    samples = sum(max((len(a) for a in inputs), default=0) for inputs, _ in sides)
    found = _find(lab, sides)
    if found is None:
        yield Padding(samples, targets=sum(t[0].size for _, t in sides if t), padded=0)
        return
    fullest = int(np.argmax([mask.sum() for mask in found.masks]))
    loss, rounding, padded, real = _effects(lab, *_told_apart(lab, batches[fullest], found.masks[fullest]))
    yield Padding(
        samples=samples,
        targets=sum(mask.size for mask in found.masks),
        padded=sum(int(mask.sum()) for mask in found.masks),
        value=float(found.target[0]) if len(found.target) == 1 else None,
        whole=found.target.dtype.kind in "biu",
        also_real=found.also_real,
        shown_by=_words(found.shown_by),
        loss=loss,
        padded_effect=padded,
        real_effect=real,
        rounding=rounding,
    )


def _values(lab: Lab, tree: Any) -> list[np.ndarray]:
    arrays = [lab.adapter.values(a) for _, a in leaves(tree, lab.adapter.is_array)]
    return [a for a in arrays if a.ndim and 0 < a.size <= MOST_VALUES and a.dtype.kind in "biuf"]


def _find(lab: Lab, sides: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> Padded | None:
    beside = [list(pairs(*side)) for side in sides]
    for number in range(min(map(len, beside))):
        found = find_padding([b[number] for b in beside])
        if found is not None:
            return found
        lab.tick()
    return find_padding_apart(sides)


def _words(frame: np.ndarray) -> str:
    if frame.dtype.kind in "iu" and len(frame) == 1:
        return f"id {int(frame[0])}"
    return "the same numbers again and again" if np.any(frame) else "zeros"


def _told_apart(lab: Lab, batch: Parts, mask: np.ndarray) -> tuple[Parts, np.ndarray]:
    """As many samples as positions could be taken for each other in the output: then one sample less."""
    if mask.shape[0] == mask.shape[1]:
        if sample_count(lab, batch) != len(mask):
            raise Unsupported("a batch has as many samples as positions, so they cannot be told apart in the output")
        kept = np.arange(len(mask) - 1)
        return take_rows(lab, batch, kept), mask[kept]
    return batch, mask


def _effects(lab: Lab, batch: Parts, mask: np.ndarray) -> tuple[float, float, float, float]:
    """(loss, rounding, effect of answers at padded positions, effect of as many at real ones)"""
    if min(int(mask.sum()), int((~mask).sum()) // 2) < FEWEST:
        raise Unsupported("too few positions of a batch are real to compare padding with them")
    start = lab.bench.snapshot()
    try:
        loss, again = (_loss(lab, batch, start, _as_it_is) for _ in range(2))
        rounding = abs(loss - again) + ROUNDING * abs(loss)
        for leaf in range(_answers(lab, batch, mask, start)):
            found = []
            # A model that has learned nothing answers padding much as it answers everything: other answers of its own then hardly
            # differ, and noise does.
            for blur in (False, True):
                real = _effect(lab, batch, start, loss, Exchange(mask, leaf, at_padding=False, blur=blur))
                padded = _effect(lab, batch, start, loss, Exchange(mask, leaf, at_padding=True, blur=blur))
                if np.isfinite([real, padded]).all() and real > rounding:
                    found.append((padded, real))
            if found:
                padded, real = max(found, key=lambda one: one[0] / one[1])
                return loss, rounding, padded, real
        raise Unsupported("the loss does not change with what the model answers at single positions")
    finally:
        lab.bench.set_training(True)
        lab.bench.restore(start)


def _answers(lab: Lab, batch: Parts, mask: np.ndarray, start: Any) -> int:
    """How many arrays of the model's output have an entry a position."""
    seen = [0]

    def count(output: Any) -> Any:
        arrays = [lab.adapter.values(a) for _, a in leaves(output, lab.adapter.is_array)]
        seen.append(sum(a.dtype.kind == "f" and places(a.shape, mask) is not None for a in arrays))
        return output

    _loss(lab, batch, start, count)
    if not max(seen):
        raise Unsupported("the model's output has no entry of its own for each position of the target")
    return max(seen)


def _effect(lab: Lab, batch: Parts, start: Any, loss: float, exchange: Exchange) -> float:
    changed = [_loss(lab, batch, start, exchange.into(lab.adapter, seed)) for seed in range(DRAWS)]
    return float(np.mean([abs(other - loss) for other in changed]))


def _loss(lab: Lab, batch: Parts, start: Any, change: Callable[[Any], Any]) -> float:
    """From the same random state each time: dropout or sampling in the loss must not look like an effect."""
    if not isinstance(lab.adapter, Substitutes):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot change what a model answers")
    lab.tick()
    lab.bench.restore(start)
    lab.bench.set_training(False)
    return lab.adapter.loss_with(lab.bench, batch, change)


def _as_it_is(output: Any) -> Any:
    return output

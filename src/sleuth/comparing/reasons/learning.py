"""Why the loss, the gradients or the step differ although everything before is the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.comparing.distance import apart
from sleuth.comparing.learning import ByUnit
from sleuth.comparing.pairing import Joined
from sleuth.comparing.reasons.activations import softmax
from sleuth.comparing.reasons.updates import Rule, rule_of
from sleuth.comparing.result import Reason, Row
from sleuth.comparing.side import Side
from sleuth.core.contract.adapter import Substitutes
from sleuth.core.runtime.tree import map_arrays

# Two numbers whose ratio is this close to a known one.
CLOSE = 1e-4
LEFT = 0.05


def loss_reasons(joined: Joined, row: Row) -> tuple[list[Reason], list[str]]:
    mine, yours = (side.bench.loss(side.batch) for side in (joined.first, joined.other))
    found = list(_ratio(joined, mine, yours, row.difference))
    found = found or list(_softmaxed(joined, mine, yours, row.difference))
    return found, [] if found else ["mean or sum", "a factor of two", "softmax before the loss"]


def _ratio(joined: Joined, mine: float, yours: float, before: float) -> Iterator[Reason]:
    if not (np.isfinite(mine) and np.isfinite(yours)) or mine == 0 or yours == 0:
        return
    for factor, text in _factors(joined):
        for ratio, names in ((yours / mine, (joined.other, joined.first)), (mine / yours, (joined.first, joined.other))):
            if factor > 1 and abs(ratio / factor - 1) < CLOSE:
                after = abs(ratio / factor - 1)
                yield Reason("reduction", f"the loss of {names[0].name} is {text} that of {names[1].name}", before, after)
                return


def _factors(joined: Joined) -> Iterator[tuple[float, str]]:
    output = joined.first.outputs()[0]
    samples = len(output) if output.ndim else 1
    yield samples, f"summed over the {samples} samples where it could be the mean: {samples} times"
    if output.ndim > 1:
        width = output.shape[-1]
        yield output.size, f"summed over all {output.size} outputs where it could be the mean: {output.size} times"
        yield width, f"summed over the {width} outputs of a sample where it could be the mean: {width} times"
    yield 2.0, "without a factor of one half: 2 times"
    yield 1 / np.log(2), "in bits where it could be in nats: 1.4427 times"


def _softmaxed(joined: Joined, mine: float, yours: float, before: float) -> Iterator[Reason]:
    """Is one's loss what the other gets when its outputs go through a softmax first?"""
    for side, other, name in ((joined.first, yours, joined.other.name), (joined.other, mine, joined.first.name)):
        tried = _after_softmax(side)
        if tried is not None and (after := abs(tried - other) / max(abs(other), 1e-30)) < CLOSE * 10:
            yield Reason("softmax", f"the loss of {name} is taken after one softmax more", before, after)
            return


def _after_softmax(side: Side) -> float | None:
    adapter = side.adapter
    if not isinstance(adapter, Substitutes):
        return None

    def change(array: Any) -> Any:
        return side.adapter.like(softmax(side.adapter.values(array)), array)

    try:
        return adapter.loss_with(side.bench, side.batch, lambda out: map_arrays(out, change, side.adapter.is_array))
    except Exception:  # a loss that takes something else
        return None


def gradient_reasons(row: Row, slopes: ByUnit) -> tuple[list[Reason], list[str]]:
    """One factor for all of them is a matter of the loss; several are not."""
    a, b = (np.concatenate([v.ravel() for both in slopes for v in both[i].values()] or [np.zeros(1)]) for i in (0, 1))
    if a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all() and (a * a).sum() > 0:
        factor = float((a * b).sum() / (a * a).sum())
        if (after := apart(factor * a, b)) <= LEFT * row.difference and factor:
            return [
                Reason("factor", f"every gradient of the second is {factor:.6g} times the first's", row.difference, after)
            ], []
    return [], ["one factor for all gradients"]


def step_reasons(joined: Joined, row: Row, slopes: ByUnit, moves: ByUnit) -> tuple[list[Reason], list[str]]:
    rules = [rule_of(side, joined, i, slopes, moves) for i, side in enumerate((joined.first, joined.other))]
    mine, yours = rules
    if (doubled := _two_biases(joined, row)) is not None:
        return [doubled], []
    tried = ["bias correction", "weight decay", "epsilon", "learning rate"]
    if mine is None or yours is None:
        return [], tried
    if mine.text == yours.text and abs(mine.rate / yours.rate - 1) < CLOSE * 10:
        return [], tried
    names = joined.first.name, joined.other.name
    after = yours.on(mine)
    if after > max(LEFT * row.difference, 1e-3):
        return [], tried
    text = f"{names[0]} steps by {_said(mine)}, {names[1]} by {_said(yours)}"
    return [Reason(_word(mine, yours), text, row.difference, after)], []


def _two_biases(joined: Joined, row: Row) -> Reason | None:
    """A recurrent layer with a bias beside each weight moves twice as far as one with their sum."""
    twin = next((t for t in joined.twins if row.first.startswith(f"{t.first.path} bias")), None)
    if twin is None or ("bias" in twin.first.tensors) == ("bias" in twin.other.tensors) or abs(row.difference - 0.5) > 0.01:
        return None
    two, one = (joined.first, joined.other) if "bias" in twin.other.tensors else (joined.other, joined.first)
    text = f"{two.name} has two biases in {twin.first.path}, which both move; {one.name} has their sum"
    return Reason("two biases", text, row.difference, abs(row.difference - 0.5))


def _said(rule: Rule) -> str:
    return f"{rule.text} at rate {rule.rate:.4g}"


def _word(mine: Rule, yours: Rule) -> str:
    if mine.text == yours.text:
        return "learning rate"
    if ("without" in mine.text) != ("without" in yours.text):
        return "bias correction"
    if ("weight decay" in mine.text) != ("weight decay" in yours.text):
        return "weight decay"
    return "epsilon" if mine.text.partition(",")[0] == yours.text.partition(",")[0] == "Adam" else "rule"

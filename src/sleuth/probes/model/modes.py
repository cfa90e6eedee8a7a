"""The same batches in training and in evaluation mode."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import ModeAgreement
from sleuth.probes.lab.changed_inputs import (
    Outputs,
    Rerun,
    changed,
    exchanges,
    input_arrays,
    movement,
    outputs_of,
    rms,
    sample_count,
    spread,
)
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.roles import answers

# Running statistics settle at their own pace: a round of passes, a look, and so on while the looks still change.
ROUND = 16
MOST_ROUNDS = 15
STILL_SETTLING = 0.95
# Slower ones hardly move in a round, which looks as if they had settled.
SLOWEST = 0.02
# Statistics whose time constant is longer than this hold the values of the start for a whole training.
LONG_TRAINING_EPOCHS = 100
PASSES = 6
# Modes closer than this need no explanation, and half of it no more patience.
CLOSE = 1.0
CLOSE_ENOUGH = 0.5
SAME = 1e-5


@probe(title="Comparing training and evaluation mode", stage=Stage.MODEL, rank=5, emits=(ModeAgreement,), needs=("forward",))
def modes(lab: Lab) -> Iterator[Observation]:
    snapshot = lab.bench.snapshot()
    try:
        yield _compare(lab, snapshot)
    finally:
        lab.bench.restore(snapshot)


def _compare(lab: Lab, start: Any) -> ModeAgreement:
    quiet, active = (Rerun(lab, start, lab.batch, training)(lab.batch.inputs) for training in (False, True))
    if _comparable(quiet, active) and movement(quiet, active) <= SAME:
        return ModeAgreement(movement(quiet, active), 0.0, None, None)
    epochs = _epochs_to_follow(lab)
    settled, difference, noise = _settle(lab, start)
    explained = _by_design(lab, settled) if difference > CLOSE else None
    return ModeAgreement(difference, noise, _loss(lab, settled, True), _loss(lab, settled, False), explained, epochs)


def _epochs_to_follow(lab: Lab) -> float | None:
    """How long running statistics take to forget their start, where that is longer than a training; None for usual ones."""
    momentum = _momentum(lab)
    if momentum is None or not 0 < momentum < SLOWEST:
        return None
    size = sample_count(input_arrays(lab, lab.batch.inputs))
    epochs = size / momentum / lab.train.samples
    if not lab.train.complete or epochs < LONG_TRAINING_EPOCHS:
        raise Unsupported(f"batch-norm with momentum {momentum:g} takes too many batches to settle to compare the modes")
    return epochs


def _comparable(one: Outputs, other: Outputs) -> bool:
    return bool(one) and one.keys() == other.keys() and all(one[k].shape == other[k].shape for k in one)


def _momentum(lab: Lab) -> float | None:
    """The slowest batch-norm's; None where there is none or it averages over everything."""
    if not isinstance(lab.adapter, Describes):
        return None
    layers = [x for x in lab.architecture.layers if x.family == "batchnorm"]
    values = [x.settings.get("momentum") for x in layers]
    return min((float(v) for v in values if isinstance(v, int | float)), default=None)


def _settle(lab: Lab, start: Any) -> tuple[Any, float, float]:
    """Fresh running statistics know nothing of the data: passes without any step let them catch up.

    (state, difference, noise) as soon as the modes agree or waiting does not bring them closer.
    """
    state, looks = start, [_difference(lab, start)]
    for _ in range(MOST_ROUNDS):
        lab.bench.restore(state)
        lab.bench.set_training(True)
        for i in range(ROUND):
            lab.tick()
            answers(lab, lab.train.batches[i % len(lab.train.batches)])
        state = lab.bench.snapshot()
        looks.append(_difference(lab, state))
        if looks[-1][0] < CLOSE_ENOUGH or (len(looks) > 2 and looks[-1][0] > STILL_SETTLING * looks[-3][0]):
            return state, *looks[-1]
    raise Unsupported("running statistics were still settling, so the modes cannot be compared yet")


def _difference(lab: Lab, settled: Any) -> tuple[float, float]:
    """(systematic difference, noise) of the worst output, in units of what it varies by."""
    quiet = Rerun(lab, settled, lab.batch)(lab.batch.inputs)
    lab.bench.restore(settled)
    lab.bench.set_training(True)
    passes = [outputs_of(lab, lab.batch) for _ in range(2)]
    if _comparable(*passes) and movement(*passes) > SAME:  # dice: the mean takes more of them
        passes += [outputs_of(lab, lab.batch) for _ in range(PASSES - 2)]
    if not all(_comparable(quiet, p) for p in passes):
        raise Unsupported("the model returns something else in training than in evaluation mode, as by design")
    found = []
    for path, still in quiet.items():
        stack = np.stack([p[path] for p in passes])
        if not (np.isfinite(stack).all() and np.isfinite(still).all()):
            raise Unsupported("the outputs are not finite")
        mean = stack.mean(axis=0)
        noise = rms(stack - mean) * (len(passes) / (len(passes) - 1)) ** 0.5
        unit = (min(spread(mean), spread(still)) ** 2 + noise**2) ** 0.5
        found.append((rms(mean - still) / unit, noise / unit))
    return max(found)


def _loss(lab: Lab, settled: Any, training: bool) -> float | None:
    if "loss" in lab.failed:
        return None
    lab.bench.restore(settled)
    lab.bench.set_training(training)
    return lab.bench.loss(lab.batch)


def _by_design(lab: Lab, settled: Any) -> str | None:
    quiet, active = (Rerun(lab, settled, lab.batch, training)(lab.batch.inputs) for training in (False, True))
    for name, apply in TURNED.items():
        if all(_close(apply(active[path]), quiet[path]) or _close(apply(quiet[path]), active[path]) for path in quiet):
            return f"one mode returns {name} of what the other returns, as by design"
    given = input_arrays(lab, lab.batch.inputs)
    for path in given if len(given) > 1 else ():
        used = [_uses(lab, settled, path, training) for training in (False, True)]
        if used[0] != used[1]:
            return f"the input {path} is used in one mode only, as by design"
    return None


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    # Dropout and batch statistics still differ between the modes; what matters is the form.
    return one.shape == other.shape and rms(one - other) < CLOSE / 2 * spread(other)


def _uses(lab: Lab, settled: Any, path: str, training: bool) -> bool:
    rerun = Rerun(lab, settled, lab.batch, training)
    base = rerun(lab.batch.inputs)
    change = next(exchanges(lab, lab.batch))
    other = changed(lab, lab.batch.inputs, lambda p, v: change(p, v) if p == path else v)
    return movement(base, rerun(other)) > 0


def _softmax(values: np.ndarray, axis: int = -1) -> np.ndarray:
    raised = np.exp(values - values.max(axis=axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis=axis, keepdims=True))


TURNED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the softmax": _softmax,
    "the softmax over the channels": lambda v: _softmax(v, 1 if v.ndim > 2 else -1),
    "the log of the softmax": lambda v: np.log(_softmax(v) + 1e-300),
    "the sigmoid": lambda v: 1 / (1 + np.exp(-np.clip(v, -500, 500))),
    "the tanh": np.tanh,
    "the exponential": lambda v: np.exp(np.clip(v, -500, 500)),
}

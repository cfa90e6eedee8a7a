"""A loop around evaluate() is watched: weights stay equal to the bit, nothing stays wrapped, what is told is what happened."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth.adapters.mithril import ADAPTER
from sleuth.core.observation import Frame, Role, Step
from tests.kits.mithril_kit import MithrilKit, ml
from tests.material import digits

KIT = MithrilKit()
X, Y = digits()
STEPS = 24


@pytest.fixture(autouse=True)
def nothing_stays_wrapped() -> Iterator[None]:
    kind = type(KIT.mlp(4, 2)[0])
    before = kind.evaluate
    yield
    assert kind.evaluate is before


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        rows = rng.integers(0, len(X), 32)
        yield X[rows], Y[rows]


def made() -> tuple[Any, dict[str, np.ndarray]]:
    np.random.seed(0)
    physical, params = KIT.mlp(64, 16, 10)
    return physical, {key: array.copy() for key, array in params.items()}


def new_dicts(physical: Any, params: dict[str, Any], told: list[float]) -> dict[str, Any]:
    loss = KIT.loss("cross-entropy")
    (output,) = physical.output_keys
    for x, y in batches():
        value, gradient = loss(physical.evaluate(params, {"input": x})[output], y)
        told.append(float(value))
        _, gradients = physical.evaluate(params, {"input": x}, output_gradients={output: gradient})
        params = {key: array - 0.3 * gradients[key] for key, array in params.items()}
    return params


def in_place(physical: Any, params: dict[str, Any], told: list[float]) -> dict[str, Any]:
    loss = KIT.loss("cross-entropy")
    (output,) = physical.output_keys
    for x, y in batches():
        value, gradient = loss(physical.evaluate(params, {"input": x})[output], y)
        told.append(float(value))
        for key, slope in physical.evaluate(params, {"input": x}, output_gradients={output: gradient})[1].items():
            params[key] -= np.float32(0.3) * slope
    return params


@pytest.mark.parametrize("loop", [new_dicts, in_place])
def test_weights_stay_equal_to_the_bit_and_every_step_is_told(loop: Callable[..., dict[str, Any]]) -> None:
    alone = loop(*made(), [])
    physical, params = made()
    start = {key: array.copy() for key, array in params.items()}
    told: list[float] = []
    watching = ADAPTER.watch((physical, params), [0.3], every=1, overhead=0.02)
    watching.open()
    try:
        beside = loop(physical, params, told)
    finally:
        watching.close()
    assert watching.trouble is None
    assert {k: a.tobytes() for k, a in beside.items()} == {k: a.tobytes() for k, a in alone.items()}
    found = watching.drain()
    steps = [o for o in found if isinstance(o, Step)]
    assert [s.loss for s in steps] == pytest.approx(told)
    assert steps[0].calls == ("forward", "backward", "step")
    first = next(f for f in found if isinstance(f, Frame) and f.role is Role.WEIGHT)
    for key, statistics in first.statistics().items():
        assert statistics.mean == pytest.approx(float(start[key].mean()), abs=1e-6)
    gradient, update = (next(f for f in found if isinstance(f, Frame) and f.role is r) for r in (Role.GRADIENT, Role.UPDATE))
    for key, statistics in update.statistics().items():
        assert statistics.rms == pytest.approx(0.3 * gradient.statistics()[key].rms, rel=1e-3)


def test_the_loss_inside_a_model_is_told() -> None:
    model = ml.models.Model()
    model |= ml.models.Linear(10).connect(input="input", weight="weight", bias="bias")
    model |= ml.models.CrossEntropy(input_type="logits").connect(input=model.cout, target="target")
    model += ml.models.Mean().connect(output="loss")
    model.expose_keys("loss")
    physical = ml.compile(model, ml.NumpyBackend(), data_keys={"input", "target"}, jit=False)
    params = {"weight": np.zeros((10, 64), np.float32), "bias": np.zeros(10, np.float32)}
    watching = ADAPTER.watch((physical, params), [0.3], every=1, overhead=0.02)
    watching.open()
    told = []
    try:
        for x, y in batches():
            one = np.ones((), np.float32)
            outputs, gradients = physical.evaluate(params, {"input": x, "target": y}, output_gradients={"loss": one})
            told.append(float(outputs["loss"]))
            params = {key: array - 0.3 * gradients[key] for key, array in params.items()}
    finally:
        watching.close()
    assert watching.trouble is None
    assert [o.loss for o in watching.drain() if isinstance(o, Step)] == pytest.approx(told)
    assert told[0] == pytest.approx(np.log(10))


def test_an_error_in_the_loop_comes_through_and_all_is_taken_off() -> None:
    physical, params = made()
    with pytest.raises(ValueError, match="nonsense"), sleuth.watch((physical, params), 0.3, directory=None, quiet=True):
        physical.evaluate(params, {"input": X[:4]})
        raise ValueError("nonsense")


def test_a_loop_that_is_not_heard_is_told() -> None:
    with sleuth.watch(made(), 0.3, directory=None, quiet=True) as w:
        pass
    assert any("no step was heard" in remark for remark in w.watching.remarks)


def test_stop_raises_before_the_weights_are_written() -> None:
    physical, params = made()
    (output,) = physical.output_keys
    before = {key: array.copy() for key, array in params.items()}
    bad = np.full((32, 10), np.nan, np.float32)
    with (
        pytest.raises(Exception, match="gradient-not-finite"),
        sleuth.watch((physical, params), 0.3, directory=None, quiet=True, on_error="stop"),
    ):
        _, gradients = physical.evaluate(params, {"input": X[:32]}, output_gradients={output: bad})
        for key, gradient in gradients.items():
            params[key] -= gradient
    assert all(np.array_equal(params[key], before[key]) for key in params)

"""A loop around a hand-written network is watched: every form is heard, weights stay equal to the bit, nothing stays wrapped."""

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth import ByHand
from sleuth.adapters.numpy import ADAPTER
from sleuth.core.history import Seen
from sleuth.core.observation import Frame, Phase, Role, Step
from sleuth.session.watch import Watch
from tests.adapters import test_numpy_forms as forms
from tests.adapters.test_numpy_forms import (
    DenseThatMoves,
    Network,
    ReLUWithRate,
    X,
    Y,
    cross_entropy,
    cross_entropy_with_gradient,
    weights,
)

FUNCTIONS = ("forward", "backward", "update", "new_weights", "train_step", "cross_entropy", "cross_entropy_with_gradient")
CLASSES = (forms.Dense, forms.ReLU, DenseThatMoves, ReLUWithRate, Network)
STEPS = 40


@pytest.fixture(autouse=True)
def nothing_stays_wrapped() -> Iterator[None]:
    before = as_written()
    yield
    assert as_written() == before


def as_written() -> list[Any]:
    return [getattr(forms, name) for name in FUNCTIONS] + [
        value for kind in CLASSES for value in vars(kind).values() if inspect.isfunction(value)
    ]


def batches(steps: int = STEPS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    for _ in range(steps):
        rows = rng.integers(0, len(X), 32)
        yield X[rows], Y[rows]


def of_functions(params: dict) -> dict:
    for x, y in batches():
        scores, cache = forms.forward(params, x)
        forms.cross_entropy(scores, y)
        forms.update(params, forms.backward(params, cache, y), 0.3)
    return params


def of_new_weights(params: dict) -> dict:
    for x, y in batches():
        scores, cache = forms.forward(params, x)
        forms.cross_entropy(scores, y)
        params = forms.new_weights(params, forms.backward(params, cache, y), 0.3)
    return params


def without_update(params: dict) -> dict:
    for x, y in batches():
        scores, cache = forms.forward(params, x)
        forms.cross_entropy(scores, y)
        for name, gradient in forms.backward(params, cache, y).items():
            params[name[1:]] -= 0.3 * gradient
    return params


def of_train_step(params: dict) -> dict:
    for x, y in batches():
        forms.train_step(params, x, y, 0.3)
    return params


def of_layers(layers: list) -> dict:
    for x, y in batches():
        for layer in layers:
            x = layer.forward(x)
        _, grad = forms.cross_entropy_with_gradient(x, y)
        for layer in reversed(layers):
            grad = layer.backward(grad)
        for layer in layers[::2]:
            layer.W -= 0.3 * layer.dW
            layer.b -= 0.3 * layer.db
    return {f"{i}.{name}": getattr(layers[i], name) for i in (0, 2) for name in ("W", "b")}


def of_layers_that_move(layers: list) -> dict:
    for x, y in batches():
        for layer in layers:
            x = layer.forward(x)
        _, grad = forms.cross_entropy_with_gradient(x, y)
        for layer in reversed(layers):
            grad = layer.backward(grad, 0.3)
    return {f"{i}.{name}": getattr(layers[i], name) for i in (0, 2) for name in ("W", "b")}


def of_network(network: Network) -> dict:
    for x, y in batches():
        _, grad = forms.cross_entropy_with_gradient(network.forward(x), y)
        network.backward(grad)
        for layer in network.layers[::2]:
            layer.W -= 0.3 * layer.dW
            layer.b -= 0.3 * layer.db
    return {f"{i}.{name}": getattr(network.layers[i], name) for i in (0, 2) for name in ("W", "b")}


Loop = Callable[[Any], dict]
HAND = {"forward": forms.forward, "backward": forms.backward}
FORMS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Loop]] = {
    "functions": (weights, lambda p: ByHand(p, **HAND, update=forms.update), of_functions),
    "new-weights": (weights, lambda p: ByHand(p, **HAND, update=forms.new_weights), of_new_weights),
    "without-update": (weights, lambda p: ByHand(p, **HAND), without_update),
    "train-step": (weights, lambda p: ByHand(p, step=forms.train_step), of_train_step),
    "layers": (lambda: [forms.Dense(64, 24), forms.ReLU(), forms.Dense(24, 10)], lambda m: m, of_layers),
    "layers-that-move": (
        lambda: [DenseThatMoves(64, 24), ReLUWithRate(), DenseThatMoves(24, 10)],
        lambda m: m,
        of_layers_that_move,
    ),
    "network": (Network, lambda m: m, of_network),
}
GIVES_NO_GRADIENTS = ("train-step", "layers-that-move")
HAS_LAYERS = ("layers", "layers-that-move", "network")


def arrays_of(model: Any) -> dict:
    if isinstance(model, dict):
        return model
    return {f"{i}.{name}": getattr(model.layers[i], name) for i in (0, 2) for name in ("W", "b")}


def watched(form: str, **options: Any) -> tuple[Watch, dict, dict]:
    make, given, loop = FORMS[form]
    alone = loop(make())
    model = make()
    with sleuth.watch(given(model), 0.3, directory=None, quiet=True, **options) as w:
        beside = loop(model)
    assert w.watching.trouble is None
    return w, alone, beside


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_heard_and_left_as_it_is(form: str) -> None:
    w, alone, beside = watched(form, every=1)
    report = w.report()
    steps = Seen(w.history).all(Step)
    assert (w.watching.steps, w.watching.looks, len(steps)) == (STEPS, STEPS, STEPS)
    assert all(step.heard and step.lr == 0.3 for step in steps)
    assert steps[-1].loss < 0.5 * steps[0].loss
    assert all(np.array_equal(alone[name], beside[name]) for name in alone)
    assert w.history.has(Role.WEIGHT)
    assert w.history.has(Role.GRADIENT) == (form not in GIVES_NO_GRADIENTS)
    assert w.history.has(Role.ACTIVATION) == (form in HAS_LAYERS)
    assert report.status == "healthy", report
    assert not w.notes


@pytest.mark.parametrize("form", ["functions", "network"])
def test_what_is_recorded_is_what_numpy_says(form: str) -> None:
    make, given, loop = FORMS[form]
    model = make()
    before = {k: np.array(v) for k, v in arrays_of(model).items()}
    watching = ADAPTER.watch(given(model), [0.3], every=1, overhead=0.02)
    watching.open()
    try:
        after = loop(model)
    finally:
        watching.close()
    frames = [f for f in watching.drain() if isinstance(f, Frame)]
    first, last = (next(f for f in order if f.role is Role.WEIGHT) for order in (frames, reversed(frames)))
    update = [f for f in frames if f.role is Role.UPDATE][-1]
    for (path, found), (name, array) in zip(first.statistics().items(), before.items(), strict=True):
        assert path.endswith(name)
        assert found.variance == pytest.approx(float(array.var()), rel=1e-6)
    for (path, found), array in zip(last.statistics().items(), after.values(), strict=True):
        moved = found.mean + update.statistics()[path].mean
        assert moved == pytest.approx(float(array.mean()), abs=1e-6 * float(np.abs(array).sum()))


def test_a_rate_that_is_too_high_is_named() -> None:
    params = weights()
    with sleuth.watch(ByHand(params, **HAND, update=forms.update), 30.0, directory=None, quiet=True) as w:
        for x, y in batches(120):
            scores, cache = forms.forward(params, x)
            forms.cross_entropy(scores, y)
            forms.update(params, forms.backward(params, cache, y), 30.0)
    assert w.report().culprits[0].finding.name == "update-too-large"


def test_an_error_in_the_loop_comes_through_and_everything_is_taken_off() -> None:
    params = weights()
    with (
        pytest.raises(ValueError, match="matmul"),
        sleuth.watch(ByHand(params, **HAND, update=forms.update), 0.3, directory=None, quiet=True),
    ):
        forms.forward(params, np.ones((2, 63)))


def test_stop_raises_before_the_weights_are_written() -> None:
    params = weights()
    kept = {name: array.copy() for name, array in params.items()}
    with (
        np.errstate(all="ignore"),
        pytest.raises(sleuth.Stopped),
        sleuth.watch(ByHand(params, **HAND, update=forms.update), 0.3, directory=None, quiet=True, on_error="stop"),
    ):
        x, y = next(batches())
        scores, cache = forms.forward(params, x * np.nan)
        forms.cross_entropy(scores, y)
        forms.update(params, forms.backward(params, cache, y), 0.3)
    assert all(np.array_equal(params[name], kept[name]) for name in params)


def test_a_watched_network_can_be_copied_and_pickled() -> None:
    network = Network()
    with sleuth.watch(network, 0.3, directory=None, quiet=True) as w:
        twin = copy.deepcopy(network)
        pickle.loads(pickle.dumps(network))
        twin.backward(cross_entropy_with_gradient(twin.forward(X[:8]), Y[:8])[1])
    assert w.watching.steps == 0, "a copy is another network"


def test_a_loop_that_is_not_heard_is_told() -> None:
    params = weights()

    def inner(params: dict, x: np.ndarray) -> tuple[np.ndarray, tuple]:
        return forms.forward(params, x)

    with sleuth.watch(ByHand(params, forward=inner), 0.3, directory=None, quiet=True) as w:
        cross_entropy(inner(params, X[:8])[0], Y[:8])
    assert any("inner() is not heard" in note for note in w.notes)
    assert any("no step was heard" in note for note in w.notes)


def test_the_loss_and_the_rate_of_a_loop_that_keeps_them_in_variables_are_read() -> None:
    params = weights()
    told: list[float] = []

    def loop() -> None:
        learning_rate = 0.3
        for x, y in batches():
            scores, cache = forms.forward(params, x)
            picked = scores[np.arange(len(y)), y]
            loss = float(np.mean(np.log(np.exp(scores).sum(1)) - picked))
            told.append(loss)
            for name, gradient in forms.backward(params, cache, y).items():
                params[name[1:]] -= learning_rate * gradient
            learning_rate *= 0.99

    watching = ADAPTER.watch(ByHand(params, **HAND), [], every=1, overhead=0.02)
    watching.open()
    try:
        loop()
    finally:
        watching.close()
    steps = [o for o in watching.drain() if isinstance(o, Step)]
    assert [s.loss for s in steps[:-1]] == pytest.approx(told[: len(steps) - 1])
    assert steps[1].lr == pytest.approx(0.3 * 0.99**2)


def test_a_validation_between_steps_is_no_part_of_them() -> None:
    params = weights()
    told: list[float] = []
    watching = ADAPTER.watch(ByHand(params, **HAND, update=forms.update), [0.3], every=1, overhead=0.02)
    watching.open()
    try:
        for x, y in batches(8):
            scores, cache = forms.forward(params, x)
            told.append(float(forms.cross_entropy(scores, y)))
            forms.update(params, forms.backward(params, cache, y), 0.3)
            for rows in (slice(0, 50), slice(50, 100)):
                forms.cross_entropy(forms.forward(params, X[rows])[0], Y[rows])
    finally:
        watching.close()
    found = watching.drain()
    assert [o.loss for o in found if isinstance(o, Step)] == pytest.approx(told)
    assert [o.calls for o in found if isinstance(o, Phase)] == [2] * 8


def test_gradients_that_the_loop_adds_up_and_never_empties_are_named() -> None:
    params = weights()
    summed = {f"d{name}": np.zeros_like(array) for name, array in params.items()}
    with sleuth.watch(ByHand(params, **HAND, update=forms.update), 0.3, directory=None, quiet=True, every=4) as w:
        for x, y in batches(120):
            scores, cache = forms.forward(params, x)
            forms.cross_entropy(scores, y)
            for name, gradient in forms.backward(params, cache, y).items():
                summed[name] = summed[name] + gradient
            forms.update(params, summed, 0.3)
    assert w.report().culprits[0].finding.name == "missing-zero-grad"

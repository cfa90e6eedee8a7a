"""Networks as people write them in NumPy: each form is examined as it stands, and nothing of it is changed."""
# ruff: noqa: N803, N806 -- weights are called as people call them

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth import ByHand, Subject, UnusableInput
from sleuth.adapters.numpy import ADAPTER
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts
from tests.material import digits

X, Y = digits()
X = X.astype(np.float64)
BATCH = Parts(X[:32], Y[:32], (X[:32], Y[:32]))


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "W1": rng.normal(0, np.sqrt(2 / 64), (64, 24)),
        "b1": np.zeros(24),
        "W2": rng.normal(0, np.sqrt(1 / 24), (24, 10)),
        "b2": np.zeros(10),
    }


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(scores: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(softmax(scores)[np.arange(len(y)), y]).mean())


def cross_entropy_with_gradient(scores: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    return cross_entropy(scores, y), (softmax(scores) - np.eye(10)[y]) / len(y)


def forward(params: dict, x: np.ndarray) -> tuple[np.ndarray, tuple]:
    z1 = x @ params["W1"] + params["b1"]
    a1 = np.maximum(z1, 0)
    scores = a1 @ params["W2"] + params["b2"]
    return scores, (x, z1, a1, scores)


def backward(params: dict, cache: tuple, y: np.ndarray) -> dict[str, np.ndarray]:
    x, z1, a1, scores = cache
    d = (softmax(scores) - np.eye(10)[y]) / len(y)
    dz1 = (d @ params["W2"].T) * (z1 > 0)
    return {"dW2": a1.T @ d, "db2": d.sum(axis=0), "dW1": x.T @ dz1, "db1": dz1.sum(axis=0)}


def update(params: dict, grads: dict, lr: float) -> None:
    for name in params:
        params[name] -= lr * grads[f"d{name}"]


def new_weights(params: dict, grads: dict, learning_rate: float) -> dict[str, np.ndarray]:
    return {name: array - learning_rate * grads[f"d{name}"] for name, array in params.items()}


def forward_of_names(x: np.ndarray, W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray) -> tuple:
    z1 = x @ W1 + b1
    a1 = np.tanh(z1)
    z2 = a1 @ W2 + b2
    a2 = softmax(z2)
    return z1, a1, z2, a2


def backward_of_names(x: np.ndarray, y: np.ndarray, a1: np.ndarray, a2: np.ndarray, W2: np.ndarray) -> tuple:
    d = (a2 - np.eye(10)[y]) / len(y)
    dW2 = a1.T @ d
    db2 = d.sum(axis=0)
    dz1 = (d @ W2.T) * (1 - a1**2)
    dW1 = x.T @ dz1
    db1 = dz1.sum(axis=0)
    return dW2, db2, dW1, db1


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(y)), y]).mean())


def forward_listed(params: list, x: np.ndarray) -> tuple[np.ndarray, list]:
    kept = []
    for i, (w, b) in enumerate(params):
        kept.append(x)
        x = x @ w + b
        x = np.maximum(x, 0) if i < len(params) - 1 else x
    return x, kept


def backward_listed(params: list, cache: list, dout: np.ndarray) -> list:
    grads = []
    for i in reversed(range(len(params))):
        grads.insert(0, (cache[i].T @ dout, dout.sum(axis=0)))
        dout = (dout @ params[i][0].T) * (cache[i] > 0) if i else dout
    return [array for pair in grads for array in pair]


def loss_and_gradients(params: dict, x: np.ndarray, y: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    scores, cache = forward(params, x)
    return cross_entropy(scores, y), {name[1:]: g for name, g in backward(params, cache, y).items()}


def train_step(params: dict, x: np.ndarray, y: np.ndarray, lr: float = 0.3) -> float:
    scores, cache = forward(params, x)
    update(params, backward(params, cache, y), lr)
    return cross_entropy(scores, y)


def train_step_to_new(params: dict, batch: tuple, lr: float) -> tuple[dict, float]:
    x, y = batch
    scores, cache = forward(params, x)
    return new_weights(params, backward(params, cache, y), lr), cross_entropy(scores, y)


class Dense:
    def __init__(self, inputs: int, outputs: int) -> None:
        self.W = np.random.default_rng(inputs).normal(0, np.sqrt(2 / inputs), (inputs, outputs))
        self.b = np.zeros(outputs)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout: np.ndarray) -> np.ndarray:
        self.dW = self.x.T @ dout
        self.db = dout.sum(axis=0)
        return dout @ self.W.T


class ReLU:
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.on = x > 0
        return x * self.on

    def backward(self, dout: np.ndarray) -> np.ndarray:
        return dout * self.on


class DenseThatMoves(Dense):
    def backward(self, output_gradient: np.ndarray, learning_rate: float) -> np.ndarray:
        back = output_gradient @ self.W.T
        self.W -= learning_rate * self.x.T @ output_gradient
        self.b -= learning_rate * output_gradient.sum(axis=0)
        return back


class ReLUWithRate(ReLU):
    def backward(self, output_gradient: np.ndarray, learning_rate: float) -> np.ndarray:
        return output_gradient * self.on


class Network:
    def __init__(self) -> None:
        self.layers = [Dense(64, 24), ReLU(), Dense(24, 10)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: np.ndarray) -> None:
        for layer in reversed(self.layers):
            grad = layer.backward(grad)


class LossWithScores:
    """`loss(X)` gives scores, `loss(X, y)` the loss and its gradients."""

    def __init__(self) -> None:
        self.params = weights()

    def loss(self, X: np.ndarray, y: np.ndarray | None = None, reg: float = 0.0) -> Any:
        scores, cache = forward(self.params, X)
        return scores if y is None else (cross_entropy(scores, y), backward(self.params, cache, y))


def by_hand(**functions: Any) -> ByHand:
    return ByHand(weights(), **functions)


def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    w = weights()
    return [(w["W1"], w["b1"]), (w["W2"], w["b2"])]


FORMS: dict[str, Callable[[], Subject]] = {
    "dict": lambda: Subject(by_hand(forward=forward, backward=backward, update=update), None, cross_entropy, 0.3),
    "new-weights": lambda: Subject(by_hand(forward=forward, backward=backward, update=new_weights), None, cross_entropy, 0.3),
    "names": lambda: Subject(by_hand(forward=forward_of_names, backward=backward_of_names), None, log_loss, 0.3),
    "pairs": lambda: Subject(ByHand(pairs(), forward=forward_listed, backward=backward_listed), None, cross_entropy, 0.3),
    "loss-and-gradients": lambda: Subject(weights(), None, step=loss_and_gradients, optimizer=0.3),
    "train-step": lambda: Subject(weights(), None, step=train_step),
    "train-step-to-new": lambda: Subject(weights(), None, step=train_step_to_new, optimizer=0.3),
    "layers": lambda: Subject([Dense(64, 24), ReLU(), Dense(24, 10)], None, cross_entropy_with_gradient, 0.3),
    "layers-that-move": lambda: Subject(
        [DenseThatMoves(64, 24), ReLUWithRate(), DenseThatMoves(24, 10)], None, cross_entropy_with_gradient, 0.3
    ),
    "network-without-parameters": lambda: Subject(Network(), None, cross_entropy_with_gradient, 0.3),
    "loss-with-scores": lambda: Subject(LossWithScores(), None, optimizer=0.3),
}


def arrays_of(subject: Subject) -> list[np.ndarray]:
    given = subject.model
    given = given.params if hasattr(given, "params") else given
    found = ADAPTER.architecture(subject).parameters
    with ADAPTER.bench(subject) as bench:
        assert [p.path for p in found] == list(bench.paths())
    if isinstance(given, dict):
        return list(given.values())
    flat = given.layers if hasattr(given, "layers") else given
    return [a for item in flat for a in (item if isinstance(item, tuple) else vars(item).values()) if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_trains_on_a_copy(form: str) -> None:
    subject = FORMS[form]()
    assert ADAPTER.claims(subject.model)
    mine = arrays_of(subject)
    before = [a.copy() for a in mine]
    with ADAPTER.bench(subject) as bench:
        assert len(bench.paths()) == 4
        first = bench.loss(BATCH)
        assert bench.loss(BATCH) == first, "asking for the loss changes nothing"
        for _ in range(20):
            bench.step(BATCH)
        assert bench.loss(BATCH) < 0.6 * first
    assert all(np.array_equal(a, b) for a, b in zip(mine, before, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_every_form_are_the_derivatives(form: str) -> None:
    with ADAPTER.bench(FORMS[form]()) as shown:
        bench = shown.double()
        found = bench.gradients(BATCH).by_path
        rng = np.random.default_rng(0)
        for path, gradient in found.items():
            assert gradient is not None
            start, direction = bench.parameter(path).copy(), rng.normal(size=gradient.shape)
            values = []
            for sign in (1, -1):
                bench.write(path, start + sign * 1e-6 * direction)
                values.append(bench.loss(BATCH))
            bench.write(path, start)
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(float(np.vdot(gradient, direction)), rel=1e-4), path


def train_at_a_fixed_rate(params: dict, x: np.ndarray, y: np.ndarray) -> float:
    return train_step(params, x, y, 0.3)


def follow_signs(params: dict, x: np.ndarray, y: np.ndarray, lr: float) -> float:
    scores, cache = forward(params, x)
    update(params, {name: np.sign(g) for name, g in backward(params, cache, y).items()}, lr)
    return cross_entropy(scores, y)


def with_momentum(params: dict, x: np.ndarray, y: np.ndarray, lr: float) -> float:
    scores, cache = forward(params, x)
    for name, g in backward(params, cache, y).items():
        VELOCITY[name] = 0.9 * VELOCITY.get(name, 0.0) + g
    update(params, VELOCITY, lr)
    return cross_entropy(scores, y)


def clipped_to_a_norm(params: dict, x: np.ndarray, y: np.ndarray, lr: float) -> float:
    scores, cache = forward(params, x)
    found = backward(params, cache, y)
    norm = np.sqrt(sum(float((g**2).sum()) for g in found.values()))
    update(params, {name: g * min(1.0, 0.25 / (norm + 1e-6)) for name, g in found.items()}, lr)
    return cross_entropy(scores, y)


def clipped_one_by_one(params: dict, x: np.ndarray, y: np.ndarray, lr: float) -> float:
    scores, cache = forward(params, x)
    update(params, {name: np.clip(g, -0.01, 0.01) for name, g in backward(params, cache, y).items()}, lr)
    return cross_entropy(scores, y)


VELOCITY: dict[str, Any] = {}
NO_GRADIENTS = [
    (clipped_to_a_norm, "clipped gradients"),
    (clipped_one_by_one, "clipped gradients"),
    (train_at_a_fixed_rate, "shows no gradients"),
    (follow_signs, "signs of gradients"),
    (with_momentum, "something else than rate times gradient"),
]


@pytest.mark.parametrize(("step", "words"), NO_GRADIENTS, ids=[step.__name__ for step, _ in NO_GRADIENTS])
def test_a_step_that_follows_no_gradient_that_can_be_told_says_so(step: Callable[..., Any], words: str) -> None:
    with ADAPTER.bench(Subject(by_hand(step=step), None)) as bench, pytest.raises(Unsupported, match=words):
        bench.gradients(BATCH)


def test_functions_beside_a_dict_are_examined_and_healthy() -> None:
    params = weights()
    before = {name: array.copy() for name, array in params.items()}
    report = sleuth.examine(
        params,
        (X, Y),
        forward=forward,
        backward=backward,
        loss=cross_entropy,
        update=update,
        optimizer=0.3,
        budget_seconds=600,  # a busy machine examines as much as a quiet one
        progress=False,
    )
    assert report.status == "healthy", report
    assert {"gradient-wrong", "cannot-overfit-one-batch", "learning-rate-too-high"} <= set(report.clear)
    assert all(np.array_equal(params[name], before[name]) for name in params)


GLOBAL = weights()


def forward_of_globals(x: np.ndarray) -> tuple[np.ndarray, tuple]:
    return forward(GLOBAL, x)


def backward_of_globals(cache: tuple, y: np.ndarray) -> dict[str, np.ndarray]:
    return backward(GLOBAL, cache, y)


def test_functions_that_find_their_weights_themselves_are_tried_on_the_originals_and_put_back() -> None:
    before = {name: array.copy() for name, array in GLOBAL.items()}
    subject = Subject(ByHand(GLOBAL, forward=forward_of_globals, backward=backward_of_globals), None, cross_entropy, 0.3)
    with ADAPTER.bench(subject) as bench:
        assert "finds them itself" in (bench.note or "")
        bench.step(BATCH)
        assert not np.array_equal(GLOBAL["W1"], before["W1"])
    assert all(np.array_equal(GLOBAL[name], before[name]) for name in before)


def test_weights_alone_are_refused_with_what_to_give() -> None:
    with pytest.raises(UnusableInput, match="give forward="):
        sleuth.examine(weights(), (X, Y), progress=False)


def test_weights_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(UnusableInput, match="give a dict or a list of NumPy arrays"):
        sleuth.examine({"W1": 3.0}, (X, Y), forward=forward, progress=False)

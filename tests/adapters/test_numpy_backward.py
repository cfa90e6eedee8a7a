"""A wrong backward is found, and told: which parameter, which term, which line."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sleuth import ByHand, Subject
from sleuth.adapters.numpy import ADAPTER
from sleuth.api import examine_subject
from sleuth.checks.model.gradient_wrong import gradient_wrong
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.settings import Configuration
from sleuth.core.stage import Confidence
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.gradient_check import gradient_check
from tests.adapters.test_numpy_forms import (
    Dense,
    ReLU,
    cross_entropy,
    cross_entropy_with_gradient,
    log_loss,
    update,
    weights,
)
from tests.adapters.test_numpy_forms import backward as right_backward
from tests.adapters.test_numpy_forms import forward as right_forward
from tests.material import digits

X, Y = digits()
X = X.astype(np.float64)
BATCH = Parts(X[:32], Y[:32], (X[:32], Y[:32]))


def three_layers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = (64, 20, 20, 10)
    found: dict[str, np.ndarray] = {}
    for i, (a, b) in enumerate(pairwise(sizes), 1):
        found |= {f"W{i}": rng.normal(0, np.sqrt(1.5 / a), (a, b)), f"b{i}": np.zeros(b)}
    return found


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def forward(params: dict, x: np.ndarray) -> tuple[np.ndarray, tuple]:
    z1 = x @ params["W1"] + params["b1"]
    a1 = np.maximum(0, z1)
    a2 = sigmoid(a1 @ params["W2"] + params["b2"])
    return a2 @ params["W3"] + params["b3"], (x, z1, a1, a2)


def backward_with(fault: str) -> Callable[..., dict[str, np.ndarray]]:
    def backward(params: dict, cache: tuple, dout: np.ndarray) -> dict[str, np.ndarray]:
        x, z1, a1, a2 = cache
        dout = {"sign": -dout, "no-mean": dout * len(x)}.get(fault, dout)
        grads = {}
        grads["W3"] = a2.T @ dout
        grads["b3"] = dout[0] if fault == "no-sum" else dout.sum(axis=0)
        dz2 = dout @ params["W3"].T
        dz2 = dz2 if fault == "no-sigmoid" else dz2 * a2 * (1 - a2)
        grads["W2"] = {"transposed": (a1.T @ dz2).T, "twice": 2 * a1.T @ dz2}.get(fault, a1.T @ dz2)
        grads["b2"] = dz2.mean(axis=0) if fault == "mean" else dz2.sum(axis=0)
        dz1 = dz2 @ params["W2"].T
        dz1 = dz1 if fault == "no-relu" else dz1 * (z1 > 0)
        grads["W1"] = (x.T @ dz1) ** 3 if fault == "odd" else x.T @ dz1
        grads["b1"] = dz1.sum(axis=0)
        if fault == "decay":
            grads |= {name: grads[name] + 0.01 * params[name] for name in ("W1", "W2", "W3")}
        return grads

    return backward


def judged(subject: Subject) -> tuple[list[Finding], dict[str, str]]:
    """The gradient check alone, as an examination would do it."""
    engine = Engine([gradient_wrong], Configuration())
    with ADAPTER.bench(subject) as bench:
        lab = Lab(subject, ADAPTER, 300.0, bench_=bench)
        lab.train.batches.append(BATCH)
        for observation in gradient_check.run(lab):
            engine.emit(observation)
    judgement = engine.judge()
    return list(judgement.findings), dict(judgement.not_examined)


def wrong(fault: str) -> Finding:
    (found,), _ = judged(
        Subject(ByHand(three_layers(), forward=forward, backward=backward_with(fault)), None, cross_entropy, 0.3)
    )
    return found


# (fault, parameter nearest to the loss, words of the summary, words of the line)
TOLD = [
    ("sign", "b3", "6 parameters (W1, b1, …) a gradient that is of the wrong sign", ""),
    ("no-mean", "b3", "32 times too large: the mean over the batch (32) is missing", ""),
    ("no-sum", "b3", "gives b3 a gradient that is that of the first sample alone: the sum over the batch is missing", "dout[0]"),
    ("no-sigmoid", "b2", "W1, b1, W2 and b2 a gradient that is right but for the derivative of sigmoid", "dz2 = dz2 if"),
    ("no-relu", "b1", "gives W1 and b1 a gradient that is right but for the derivative of relu", "dz1 = dz1 if"),
    ("transposed", "W2", "gives W2 a gradient that is the transpose of the right one", 'grads["W2"] ='),
    ("twice", "W2", "gives W2 a gradient that is 2 times the right one", 'grads["W2"] ='),
    ("mean", "b2", "gives b2 a gradient that is 32 times too small", 'grads["b2"] ='),
]


@pytest.mark.parametrize(("fault", "where", "words", "line"), TOLD, ids=[fault for fault, *_ in TOLD])
def test_the_term_and_the_line_are_told(fault: str, where: str, words: str, line: str) -> None:
    found = wrong(fault)
    assert (found.where, found.name) == (where, "gradient-wrong")
    assert words in found.summary
    assert found.confidence is (Confidence.LIKELY if fault == "twice" else Confidence.CERTAIN)
    assert found.location is not None
    assert found.location.file == __file__
    assert line in found.location.text


def test_what_is_no_known_term_is_told_with_its_numbers_and_line() -> None:
    found = wrong("odd")
    assert found.where == "W1"
    assert found.confidence is Confidence.LIKELY
    assert "b1 behind them is right" in found.summary
    assert found.location is not None
    assert 'grads["W1"] =' in found.location.text


def test_a_right_backward_is_clear() -> None:
    subject = Subject(ByHand(three_layers(), forward=forward, backward=backward_with("")), None, cross_entropy, 0.3)
    assert judged(subject) == ([], {})


def test_weight_decay_in_the_gradients_alone_is_no_fault() -> None:
    subject = Subject(ByHand(three_layers(), forward=forward, backward=backward_with("decay")), None, cross_entropy, 0.3)
    findings, left_out = judged(subject)
    assert not findings
    assert "weight decay of 0.01" in left_out["gradient-wrong"]


class Adding(Dense):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.dW, self.db = np.zeros_like(self.W), np.zeros_like(self.b)

    def backward(self, dout: np.ndarray) -> np.ndarray:
        self.dW += self.x.T @ dout
        self.db += dout.sum(axis=0)
        return dout @ self.W.T


class Cleared:
    """Adds up as well, and has a zero_grad, which a loop calls."""

    def __init__(self) -> None:
        self.layers = [Adding(64, 24), ReLU(), Adding(24, 10)]

    def parameters(self) -> list[np.ndarray]:
        return [a for layer in self.layers[::2] for a in (layer.W, layer.b)]

    def zero_grad(self) -> None:
        for layer in self.layers[::2]:
            layer.dW[:], layer.db[:] = 0, 0

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: np.ndarray) -> list[np.ndarray]:
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        return [a for layer in self.layers[::2] for a in (layer.dW, layer.db)]


class Forgetful(Dense):
    """Keeps the input of the first batch for all others of its size."""

    x: Any = None

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x if self.x is None or len(self.x) != len(x) else self.x
        return x @ self.W + self.b


def test_gradients_that_nobody_resets_are_told() -> None:
    (found,), _ = judged(Subject([Adding(64, 24), ReLU(), Adding(24, 10)], None, cross_entropy_with_gradient, 0.3))
    assert "grow from step to step" in found.summary
    assert found.location is not None
    assert found.location.text == "self.dW += self.x.T @ dout"


def test_gradients_that_zero_grad_resets_are_clear() -> None:
    assert judged(Subject(Cleared(), None, cross_entropy_with_gradient, 0.3)) == ([], {})


class Emptied(Adding):
    """A loop empties it in line, as `train` below does."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.grad_W, self.grad_b = np.zeros_like(self.W), np.zeros_like(self.b)
        del self.dW, self.db

    def backward(self, dout: np.ndarray) -> np.ndarray:
        self.grad_W += self.x.T @ dout
        self.grad_b += dout.sum(axis=0)
        return dout @ self.W.T


def train(network: list[Any], batches: list[np.ndarray]) -> None:
    for x in batches:
        for layer in network[::2]:
            layer.grad_W[...] = 0
            layer.grad_b = np.zeros_like(layer.b)
            x = layer.forward(x)


def test_gradients_that_a_line_of_the_loop_resets_are_clear() -> None:
    assert judged(Subject([Emptied(64, 24), ReLU(), Emptied(24, 10)], None, cross_entropy_with_gradient, 0.3)) == ([], {})


def test_a_cache_of_an_earlier_batch_is_told() -> None:
    (found,), _ = judged(Subject([Forgetful(64, 24), ReLU(), Dense(24, 10)], None, cross_entropy_with_gradient, 0.3))
    assert "answers for an earlier batch" in found.summary


def first_culprit(subject: Subject) -> Finding:
    """The budget counts the processor's time: a busy machine examines as much as a quiet one."""
    return examine_subject(subject, progress=False, clock=time.process_time).culprits[0].finding


def test_a_bias_gradient_that_is_not_summed_is_told_with_the_cure() -> None:
    def backward(params: dict, cache: tuple, y: np.ndarray) -> dict[str, np.ndarray]:
        grads = right_backward(params, cache, y)
        grads["db1"] = np.ones((len(y), 24))
        return grads

    found = first_culprit(Subject(ByHand(weights(), forward=right_forward, backward=backward), (X, Y), cross_entropy, 0.3))
    assert (found.name, found.where) == ("backward-fails", "b1")
    assert "dy.sum(axis=0)" in found.fix
    assert found.location is not None
    assert "db1" in found.location.text


def truncating(params: dict, grads: dict, lr: float) -> None:
    for name, array in params.items():
        params[name] = (array - lr * grads[f"d{name}"]).astype(array.dtype)


@pytest.mark.parametrize("way", [update, truncating], ids=["refused", "truncated"])
def test_weights_of_whole_numbers_that_stay_so_are_told(way: Callable[..., Any]) -> None:
    params = {**weights(), "W1": np.random.default_rng(0).integers(-1, 2, (64, 24))}
    model = ByHand(params, forward=right_forward, backward=right_backward, update=way)
    with ADAPTER.bench(Subject(model, None, cross_entropy, 0.3)) as bench:
        with pytest.raises(ValueError, match="W1 holds whole numbers") as raised:
            bench.gradients(BATCH)
        told = bench.explain_failure(raised.value, "backward")
    assert (told.expected, told.got) == ("weights of floating point", "W1 of int64")


def test_whole_numbers_that_the_update_turns_into_floats_are_fine() -> None:
    def fresh(params: dict, grads: dict, lr: float) -> dict:
        return {name: array - lr * grads[f"d{name}"] for name, array in params.items()}

    params = {**weights(), "W1": np.random.default_rng(0).integers(-1, 2, (64, 24))}
    model = ByHand(params, forward=right_forward, backward=right_backward, update=fresh)
    with ADAPTER.bench(Subject(model, None, cross_entropy, 0.3)) as bench:
        assert bench.gradients(BATCH).loss > 0


def test_a_rate_that_whole_division_made_zero_is_told() -> None:
    def update(params: dict, grads: dict, lr: float = 1 // 10) -> None:
        for name in params:
            params[name] -= lr * grads[f"d{name}"]

    model = ByHand(weights(), forward=right_forward, backward=right_backward, update=update)
    found = first_culprit(Subject(model, (X, Y), cross_entropy))
    assert found.name == "optimiser-setting-odd"
    assert "1 // 10 is 0" in found.fix


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=0))
    return e / e.sum(axis=0)


def forward_over_the_batch(params: dict, x: np.ndarray) -> tuple[np.ndarray, tuple]:
    scores, (x, z1, a1, _) = right_forward(params, x)
    return softmax(scores), (x, z1, a1, scores)


def test_a_softmax_over_the_batch_is_told_before_the_gradients_that_it_spoils() -> None:
    model = ByHand(weights(), forward=forward_over_the_batch, backward=right_backward, update=update)
    found = first_culprit(Subject(model, (X, Y), log_loss, 0.3))
    assert found.name == "softmax-wrong-axis"
    assert found.location is not None
    assert found.location.text == "return e / e.sum(axis=0)"

"""A plain loop in MLX on digits under watch: silent when healthy, the cause first when not, and the same to the last bit."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_map

import sleuth
from sleuth.adapters.mlx.watching.listeners import LISTENERS
from tests.material import digits

X, Y = digits()
# Else a C++ compiler translates each activation.
mx.disable_compile()


class Classifier(nn.Module):
    def __init__(self, idle: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(32, 10)
        if idle:
            self.idle = nn.Linear(32, 32)

    def __call__(self, x: mx.array) -> mx.array:
        return self.last(self.drop(nn.relu(self.first(x))))


def loss_of(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def broken_loss(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
    chances = mx.softmax(model(x) * 60, axis=-1)
    return -mx.mean(mx.log(mx.take_along_axis(chances, y[:, None], axis=1)))  # of zero


class Training:
    """As people write it: the gradient function is made once, the loss is printed now and then."""

    def __init__(
        self, rate: float = 3e-3, loss: Callable[..., Any] = loss_of, reads: int = 1, model: nn.Module | None = None
    ) -> None:
        mx.random.seed(0)
        self.model = model or Classifier()
        self.optimiser = optim.Adam(learning_rate=rate)
        self.gradient = nn.value_and_grad(self.model, loss)
        self.reads = reads

    def run(self, steps: int) -> None:
        rng = np.random.default_rng(0)
        for step in range(steps):
            rows = rng.integers(0, len(X), 32)
            loss, gradients = self.gradient(self.model, mx.array(X[rows]), mx.array(Y[rows]))
            self.optimiser.update(self.model, gradients)
            mx.eval(self.model.parameters(), self.optimiser.state)
            if self.reads and step % self.reads == 0:
                loss.item()

    def state(self) -> list[np.ndarray]:
        held = {"model": self.model.parameters(), "optimiser": self.optimiser.state, "dice": list(mx.random.state)}
        return [np.array(a) for _, a in tree_flatten(held)]


def watched(training: Training, steps: int = 120, **options: Any) -> sleuth.Report:
    settings = {"directory": None, "quiet": True, "every": 5, **options}
    with sleuth.watch(training.model, training.optimiser, **settings) as w:
        training.run(steps)
    assert w.watching.trouble is None, w.watching.trouble
    assert w.watching.steps == steps
    return w.report()


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    plain = (mx.value_and_grad, mx.compile, mx.tanh, nn.relu, nn.losses.cross_entropy, nn.Linear.__call__, optim.Adam.update)
    yield
    assert not LISTENERS
    after = (mx.value_and_grad, mx.compile, mx.tanh, nn.relu, nn.losses.cross_entropy, nn.Linear.__call__, optim.Adam.update)
    assert all(one is other for one, other in zip(plain, after, strict=True))


@pytest.mark.parametrize("options", [{"every": 7}, {"every": None}])
def test_a_watched_training_is_the_same_to_the_last_bit(options: dict[str, Any]) -> None:
    plain, other = Training(), Training()
    mx.random.seed(1)
    plain.run(200)
    expected = plain.state()
    mx.random.seed(1)
    watched(other, 200, **options)
    assert all(np.array_equal(one, two) for one, two in zip(expected, other.state(), strict=True))


@pytest.mark.parametrize("reads", [0, 1])
def test_a_step_that_is_not_looked_at_has_nothing_computed_and_one_that_is_once(reads: int, monkeypatch) -> None:
    training, counts, plain = Training(reads=reads), [0], mx.eval

    def count(*args: Any) -> None:
        counts[0] += 1
        plain(*args)

    monkeypatch.setattr(mx, "eval", count)
    with sleuth.watch(training.model, training.optimiser, directory=None, quiet=True, every=10):
        training.run(30)
        assert counts[0] == 30 + 3
    monkeypatch.undo()


def test_a_healthy_training_is_silent_also_where_its_losses_are_not_read() -> None:
    for reads in (1, 0):
        report = watched(Training(reads=reads), 200)
        assert not report.findings, report.to_text()
        assert {"update-too-large", "zero-gradients", "double-softmax", "dead-units"} <= set(report.clear)
        losses = report.facts["training"]
        assert losses["first"] > 2 > 0.6 > losses["last"]


def test_a_rate_that_is_too_high_is_named_first() -> None:
    mx.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    assert watched(Training(rate=1.0, model=model), 60, every=2).culprits[0].finding.name == "update-too-large"


def test_a_part_that_nothing_uses_is_named_first_with_its_line() -> None:
    finding = watched(Training(model=Classifier(idle=True))).culprits[0].finding
    assert (finding.name, finding.where) == ("disconnected-parameters", "idle")
    assert finding.location is not None
    assert finding.location.text == "self.idle = nn.Linear(32, 32)"


def test_a_sum_of_gradients_that_is_not_divided_has_the_line_that_uses_it() -> None:
    training = Training(model=nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimiser, rng = optim.SGD(learning_rate=0.05), np.random.default_rng(0)
    with sleuth.watch(training.model, optimiser, directory=None, quiet=True, every=1) as w:
        for _ in range(12):
            total = None
            for rows in rng.integers(0, len(X), (4, 16)):
                _, found = training.gradient(training.model, mx.array(X[rows]), mx.array(Y[rows]))
                total = found if total is None else tree_map(mx.add, total, found)
            optimiser.update(training.model, total)  # as it is
            mx.eval(training.model.parameters(), optimiser.state)
    finding = w.report().culprits[0].finding
    assert finding.name == "accumulation-not-scaled"
    assert finding.location is not None
    assert finding.location.text.endswith("# as it is")
    assert finding.fix.startswith("Divide the sum by 4 before the step.")


def test_a_frozen_head_is_named_first() -> None:
    training = Training()
    training.model.last.freeze()
    assert watched(training).culprits[0].finding.name == "frozen-parameters"


def test_the_operation_that_breaks_the_loss_is_named_with_its_line() -> None:
    finding = watched(Training(rate=0.1, loss=broken_loss), 40, every=1).culprits[0].finding
    assert finding.name == "loss-not-finite"
    assert "log" in finding.summary
    assert finding.location is not None
    assert finding.location.text.endswith("# of zero")


def test_a_training_is_stopped_before_bad_weights_are_written() -> None:
    training = Training(rate=0.1, loss=broken_loss)
    with pytest.raises(sleuth.Stopped, match="loss-not-finite"):
        watched(training, 40, on_error="stop")
    assert all(np.isfinite(array).all() for array in training.state())


def test_what_was_compiled_before_the_watch_is_said_not_to_be_heard() -> None:
    training = Training()
    state = [training.model.state, training.optimiser.state, mx.random.state]

    def step(x: mx.array, y: mx.array) -> mx.array:
        loss, gradients = training.gradient(training.model, x, y)
        training.optimiser.update(training.model, gradients)
        return loss

    mx.enable_compile()
    try:
        compiled = mx.compile(step, inputs=state, outputs=state)
        with sleuth.watch(training.model, training.optimiser, directory=None, quiet=True, every=1) as w:
            compiled(mx.array(X[:32]), mx.array(Y[:32]))
        mx.eval(state)
    finally:
        mx.disable_compile()
    assert w.watching.trouble is None
    assert "mx.compile" in w.watching.remarks[0]
    assert not w.report().findings

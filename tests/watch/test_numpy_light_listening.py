"""Between steps that are heard in full a watch of NumPy listens lightly: every loss is kept, and what is new is heard in full."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth.adapters.numpy.watching.listener import NumpyListener
from sleuth.core.check import Seen
from sleuth.core.observation import NotFinite, Phase, Step

STEPS = 300
# Steps at which something new happens; by chance one of them may be heard in full anyway.
NEW = (150, 171, 193, 214, 236, 257, 279)


class Bare:
    """Without an update: the loop changes the weights itself."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.W, self.b = rng.normal(size=(6, 3)) / 3, np.zeros(3)

    def parameters(self) -> list[np.ndarray]:
        return [self.W, self.b]

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad: np.ndarray) -> list[np.ndarray]:
        return [self.x.T @ grad, grad.sum(0)]


class Network(Bare):
    def update(self, grads: list[np.ndarray], lr: float) -> None:
        for array, grad in zip(self.parameters(), grads, strict=True):
            array -= lr * grad

    def zero_grad(self) -> None: ...


def mse(output: np.ndarray, target: np.ndarray) -> float:
    return float(((output - target) ** 2).mean())


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(rng.normal(size=(8, 6)), rng.normal(size=(8, 3))) for _ in range(STEPS)]


def train(network: Network, between: Callable[[int], Any] = lambda step: None, rate: float = 0.05) -> list[float]:
    losses = []
    for i, (x, y) in enumerate(batches()):
        between(i)
        output = network.forward(x)
        losses.append(mse(output, y))
        network.update(network.backward(2 * (output - y) / output.size), rate)
    return losses


def seen(watch: Any, kind: type) -> list[Any]:
    watch.report()
    return Seen(watch.history).all(kind)


def watching(network: Bare, **options: Any) -> Any:
    return sleuth.watch(network, 0.05, directory=None, quiet=True, **options)


def test_most_steps_are_heard_lightly_and_every_loss_is_kept() -> None:
    network = Network()
    with watching(network) as w:
        losses = train(network)
    steps = seen(w, Step)
    assert [s.loss for s in steps] == pytest.approx(losses, rel=1e-6)
    assert {s.lr for s in steps} == {0.05}
    assert sum(not s.calls for s in steps) > STEPS / 2


def test_weights_are_those_of_a_training_that_nobody_watched() -> None:
    plain, watched = Network(), Network()
    train(plain)
    with watching(watched):
        train(watched)
    assert all(np.array_equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))
    assert not hasattr(Network.forward, "__wrapped__")
    assert "forward" not in vars(Network)


def test_a_validation_is_heard_in_full() -> None:
    network, some = Network(), batches()[:3]

    def validate(step: int) -> None:
        for x, _ in some if step in NEW else []:
            network.forward(x)

    with watching(network) as w:
        train(network, validate)
    assert [(p.step, p.calls) for p in seen(w, Phase)] == [(step, 3) for step in NEW]


def test_a_call_that_is_new_is_heard_in_full() -> None:
    network = Network()
    with watching(network) as w:
        train(network, lambda step: network.zero_grad() if step in NEW else None)
    assert tuple(s.step for s in seen(w, Step) if "zero_grad" in s.calls) == NEW
    assert any(s.unusual for s in seen(w, Step))


def test_a_loss_that_is_not_finite_is_heard_in_full_before_weights_are_written() -> None:
    network = Network()

    def spoil(step: int) -> None:
        if step == STEPS - 50:
            network.b[0] = np.nan

    with pytest.raises(sleuth.Stopped), watching(network, on_error="stop") as w:
        train(network, spoil)
    assert w.watching.steps == STEPS - 50
    assert np.isfinite(network.W).all()


def test_a_nan_is_told_by_a_watch_that_only_reports() -> None:
    network = Network()

    def spoil(step: int) -> None:
        network.b[0] = np.nan if step == STEPS - 50 else network.b[0]

    with watching(network) as w:
        train(network, spoil)
    (found,) = [f for f in w.report().findings if f.name == "loss-not-finite"]
    assert f"step {STEPS - 50}" in found.summary


def test_a_loop_that_steps_by_itself_is_heard_lightly_as_well() -> None:
    network = Bare()
    with watching(network) as w:
        for x, y in batches():
            output = network.forward(x)
            loss = mse(output, y)
            grads = network.backward(2 * (output - y) / output.size)
            network.W -= 0.05 * grads[0]
            network.b -= 0.05 * grads[1]
    del loss
    steps = seen(w, Step)
    assert len(steps) == STEPS
    assert all(s.heard for s in steps)


def test_every_tenth_step_is_looked_at_where_that_is_asked_for() -> None:
    network = Network()
    with watching(network, every=10) as w:
        train(network)
    assert w.watching.looks == STEPS / 10


def test_a_gradient_that_is_not_finite_is_named_by_its_parameter_without_any_option() -> None:
    class Breaking(Network):
        def backward(self, grad: np.ndarray) -> list[np.ndarray]:
            found = super().backward(grad)
            found[1][0] = np.inf if self.calls == 7 else found[1][0]
            self.calls += 1
            return found

    breaking = Breaking()
    breaking.calls = 0
    with watching(breaking, every=1) as w, np.errstate(all="ignore"):
        train(breaking)
    (first, *_) = [n for n in seen(w, NotFinite) if n.what == "gradient"]
    assert (first.step, first.where, first.infs) == (7, "b", 1)


@pytest.mark.parametrize("method", ["begin", "end", "pass_step", "resume", "layer_made", "note_loss", "end_step", "before_write"])
def test_an_error_of_ours_never_reaches_the_loop(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("ours")

    plain, watched = Network(), Network()
    train(plain)
    monkeypatch.setattr(NumpyListener, method, broken)
    with watching(watched):
        train(watched)
    assert all(np.array_equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))

"""What a model of MLX is asked between its steps: the loss of that, its target, and whether it is training data."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest

from sleuth.adapters.mlx.watching.watching import MlxWatching
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Evaluation, Observation, Split

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 7)).astype(np.float32)
Y = (X @ RNG.normal(size=(7, 3))).argmax(1).astype(np.int32)
STEPS = 40

Ask = Callable[[nn.Module], Any]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(7, 16)
        self.outer = nn.Linear(16, 3)

    def __call__(self, x: mx.array) -> mx.array:
        return self.outer(nn.silu(self.inner(x)))


def by_hand(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
    scores = model(x)
    return mx.mean(mx.logsumexp(scores, axis=1) - mx.take_along_axis(scores, y[:, None], axis=1)[:, 0])


def watched(ask: Ask, compiled: bool = False) -> tuple[nn.Module, Kept, list[Observation]]:
    mx.random.seed(2)
    model, optimiser = Net(), optim.SGD(learning_rate=1e-2)
    watching = MlxWatching(model, [optimiser], every=None, overhead=0.02, keeps=True)
    watching.open()
    gradient = nn.value_and_grad(model, by_hand)

    def step(x: mx.array, y: mx.array) -> mx.array:
        loss, found = gradient(model, x, y)
        optimiser.update(model, found)
        return loss

    state = [model.state, optimiser.state]
    take = partial(mx.compile, inputs=state, outputs=state)(step) if compiled else step
    try:
        for number, rows in enumerate(np.random.default_rng(1).integers(0, 300, (STEPS, 20)), 1):
            loss = take(mx.array(X[rows]), mx.array(Y[rows]))
            mx.eval(model.state, optimiser.state, loss)
            if number % 5 == 0:
                ask(model)
    finally:
        watching.close()
    assert watching.trouble is None, watching.trouble
    kept = watching.take_kept()
    assert kept is not None
    return model, kept, watching.drain()


def evaluations(seen: list[Observation]) -> list[Evaluation]:
    return [o for o in seen if isinstance(o, Evaluation)]


HELD_OUT, WANTED = mx.array(X[300:]), mx.array(Y[300:])
PAIR = (HELD_OUT, WANTED)
HOLDER = SimpleNamespace(x=HELD_OUT, y=WANTED)


def accuracy(model: nn.Module, x: mx.array, y: mx.array) -> float:
    return mx.mean(model(x).argmax(1) == y).item()


def answers(model: nn.Module, x: mx.array) -> mx.array:
    return model(x)


def beside_arguments(model: nn.Module) -> None:
    accuracy(model, HELD_OUT, WANTED)


def in_batches(model: nn.Module) -> None:
    for i in range(0, 100, 25):
        accuracy(model, HELD_OUT[i : i + 25], WANTED[i : i + 25])


def in_a_tuple(model: nn.Module) -> None:
    mx.eval(model(PAIR[0]).argmax(1) == PAIR[1])


def in_an_object(model: nn.Module) -> None:
    held = HOLDER
    mx.eval(model(held.x).argmax(1) == held.y)


def by_another_function(model: nn.Module) -> None:
    x, y = HELD_OUT, WANTED
    mx.eval(answers(model, x).argmax(1) == y)


def of_numpy(model: nn.Module) -> None:
    x, y = X[300:], Y[300:]
    assert np.array(model(mx.array(x)).argmax(1) == mx.array(y)).shape == (100,)


def for_the_loss(model: nn.Module) -> None:
    by_hand(model, HELD_OUT, WANTED).item()


ASKS = (beside_arguments, in_batches, in_a_tuple, in_an_object, by_another_function, of_numpy, for_the_loss)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_loss_of_a_validation_is_what_the_formula_of_the_training_says_of_it(ask: Ask, compiled: bool) -> None:
    model, kept, seen = watched(ask, compiled)
    told = evaluations(seen)
    assert [e.step for e in told] == [5, 10, 15, 20, 25, 30, 35, 40] or len(told) == 7  # an array is known when it comes again
    assert {e.split for e in told} == {Split.VALIDATION}
    assert told[-1].metrics["loss"] == pytest.approx(by_hand(model, HELD_OUT, WANTED).item(), rel=1e-4)
    assert told[-1].metrics["accuracy"] == pytest.approx(accuracy(model, HELD_OUT, WANTED))
    targets = [b.parts.target for group in kept.validation for b in group.batches]
    assert all(target is not None and set(target.tolist()) <= {0, 1, 2} for target in targets)


def test_training_data_that_is_measured_on_is_no_validation() -> None:
    x, y = mx.array(X[:300]), mx.array(Y[:300])
    _, _, seen = watched(lambda model: accuracy(model, x, y))
    assert not evaluations(seen)


def test_where_two_arrays_may_be_the_target_none_is() -> None:
    def ask(model: nn.Module) -> None:
        x, y, groups = HELD_OUT, WANTED, mx.zeros(100, mx.int32)
        mx.eval(model(x).argmax(1) == y, groups)

    _, kept, seen = watched(ask)
    assert not evaluations(seen)
    assert all(b.parts.target is None for group in kept.validation for b in group.batches)


def test_an_answer_that_nobody_has_computed_is_not_computed_by_us() -> None:
    held = []

    def ask(model: nn.Module) -> None:
        x, y = HELD_OUT, WANTED
        held.append((model(x), y))

    _, _, seen = watched(ask)
    assert not evaluations(seen)


def test_what_a_compiled_function_asks_is_kept_with_its_target() -> None:
    asked: dict[int, Any] = {}

    def ask(model: nn.Module) -> None:
        asked.setdefault(id(model), mx.compile(lambda x, y: mx.mean(model(x).argmax(1) == y), inputs=[model.state]))
        asked[id(model)](HELD_OUT, WANTED).item()

    _, kept, _ = watched(ask)
    (group,) = [g for g in kept.validation if g.of_its_own]
    assert np.array_equal(group.batches[0].parts.inputs, X[300:])
    assert np.array_equal(group.batches[0].parts.target, Y[300:])

"""Whose steps an optimiser of MLX takes, and the lines that made it and narrowed the weights."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest

from sleuth.adapters.mlx.watching.growing_graphs import GrowingGraphs
from sleuth.core.observation import Architecture, Call, Optimiser, Pending, Step
from sleuth.core.trial import OutputSpread
from tests.watch.test_mlx_trees import Watched, discovered

RNG = np.random.default_rng(4)
X = mx.array(RNG.normal(size=(200, 5)).astype(np.float32))
Y = mx.array(RNG.integers(0, 3, 200).astype(np.int32))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 8)
        self.head = nn.Linear(8, 3)

    def __call__(self, x: mx.array) -> mx.array:
        return self.head(nn.relu(self.body(x)))


def loss(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


Take = Callable[[nn.Module, Any], Any]


def trained(make: Callable[[], Take]) -> list[Watched]:
    def run() -> None:
        model, step = Net(), make()
        gradient = nn.value_and_grad(model, loss)
        for i in range(20):
            rows = mx.array(np.arange(10) + 10 * (i % 20))
            _, found = gradient(model, X[rows], Y[rows])
            step(model, found)
            mx.eval(model.parameters())

    return discovered(run)[0]


def left_out(watched: Watched) -> set[str]:
    return {p.path for a in watched.seen(Architecture) for p in a.parameters if not p.optimised}


def test_a_step_of_a_part_of_a_model_is_a_step_and_the_rest_is_never_stepped() -> None:
    def make() -> Take:
        optimiser = optim.Adam(learning_rate=1e-2)
        return lambda model, gradients: optimiser.update(model.head, gradients["head"])

    (found,) = trained(make)
    assert len(found.seen(Step)) == 20
    assert all(not p.idle for p in found.seen(Pending))
    assert left_out(found) == {"body.weight", "body.bias"}


def test_what_is_given_to_the_step_decides_also_where_the_model_is_whole() -> None:
    def make() -> Take:
        optimiser = optim.Adam(learning_rate=1e-2)
        return lambda model, gradients: optimiser.update(model, {"head": gradients["head"]})

    (found,) = trained(make)
    assert left_out(found) == {"body.weight", "body.bias"}


def test_two_optimisers_for_two_parts_leave_nothing_out() -> None:
    def make() -> Take:
        one, two = optim.Adam(learning_rate=1e-2), optim.SGD(learning_rate=1e-2)

        def step(model: nn.Module, gradients: Any) -> None:
            one.update(model.body, gradients["body"])
            two.update(model.head, gradients["head"])

        return step

    (found,) = trained(make)
    assert not left_out(found)


def test_what_somebody_writes_by_hand_is_not_left_out() -> None:
    def make() -> Take:
        optimiser = optim.SGD(learning_rate=1e-2)

        def step(model: nn.Module, gradients: Any) -> None:
            optimiser.update(model.head, gradients["head"])
            model.body.weight = 0.99 * model.body.weight
            model.body.bias = model.body.bias + 1e-3

        return step

    (found,) = trained(make)
    assert not left_out(found)


def test_an_optimiser_has_the_line_that_made_it_also_where_the_training_began_later() -> None:
    def make() -> Take:
        optimiser = optim.Adam(learning_rate=1e-2)
        return lambda model, gradients: optimiser.update(model, gradients)

    (found,) = trained(make)
    (told,) = found.seen(Optimiser)
    assert told.location is not None
    assert told.location.line == make.__code__.co_firstlineno + 1


@pytest.mark.parametrize("way", [lambda m: m.set_dtype(mx.float16), lambda m: m.apply(lambda a: a.astype(mx.bfloat16))])
def test_the_line_that_makes_weights_narrow_is_told(way: Callable[[nn.Module], Any]) -> None:
    optimiser = optim.SGD(learning_rate=1e-3)
    line = []

    def run() -> None:
        model = Net()
        line.append(way.__code__.co_firstlineno)
        way(model)
        gradient = nn.value_and_grad(model, loss)
        for _ in range(8):
            _, found = gradient(model, X[:10], Y[:10])
            optimiser.update(model, found)
            mx.eval(model.parameters())

    (found,), _ = discovered(run)
    assert [c.location.line for c in found.seen(Call) if c.kind == "narrowed" and c.location] == line


def test_a_step_that_returns_weights_which_nobody_takes_has_its_line() -> None:
    def make() -> Take:
        optimiser = optim.SGD(learning_rate=1e-2)
        return lambda model, gradients: optimiser.apply_gradients(gradients, model.parameters())

    (found,) = trained(make)
    assert [c for c in found.seen(Call) if c.kind == "returns-weights" and c.location is not None]


def test_what_waits_at_one_step_and_not_at_another_has_not_grown() -> None:
    graphs = GrowingGraphs()
    waiting = mx.zeros(3)
    for step in range(1, 200):
        waiting = mx.zeros(3)
        for _ in range(200 if step in (32, 128) else 2):
            waiting = waiting + 1
        graphs.after_step(0)
    assert [r.alive for r in graphs.take() if r.alive] == []
    assert waiting is not None


def test_what_waits_of_longer_and_longer_sequences_is_of_one_step_alone() -> None:
    graphs = GrowingGraphs()
    waiting = mx.zeros(3)
    for step in range(1, 200):
        waiting = mx.zeros(3)
        for _ in range(20 * (step // 20)):
            waiting = waiting + 1
        graphs.after_step(0)
    assert [r.alive for r in graphs.take() if r.alive] == []
    assert waiting is not None


def test_what_becomes_more_at_every_step_has_grown() -> None:
    graphs = GrowingGraphs()
    total = mx.zeros(3)
    for _ in range(1, 70):
        total = total + 1
        graphs.after_step(0)
    found = [r for r in graphs.take() if r.alive]
    assert found
    assert found[0].holder is not None
    assert found[0].holder.name == "total"


def test_codes_that_a_loss_only_draws_together_become_one_and_the_loss_has_its_line() -> None:
    def together(model: nn.Module, a: mx.array, b: mx.array) -> mx.array:
        return mx.mean(mx.square(model(a) - model(b)))

    def apart(model: nn.Module, a: mx.array, b: mx.array) -> mx.array:
        return together(model, a, b) + mx.mean(mx.square(mx.std(model(a), axis=0) - 1))

    def spread(loss: Callable[..., mx.array]) -> OutputSpread:
        def run() -> None:
            model, optimiser = Net(), optim.Adam(learning_rate=2e-2)
            gradient = nn.value_and_grad(model, loss)
            for _ in range(150):
                rows = mx.array(RNG.integers(0, 200, 40))
                a, b = (X[rows] + mx.array(RNG.normal(0, 0.3, (40, 5)).astype(np.float32)) for _ in range(2))
                _, found = gradient(model, a, b)
                optimiser.update(model, found)
                mx.eval(model.parameters(), optimiser.state)

        (found,), _ = discovered(run)
        (told,) = found.seen(OutputSpread)
        return told

    drawn, kept = spread(together), spread(apart)
    assert drawn.location is not None
    assert drawn.location.line == together.__code__.co_firstlineno + 1
    assert drawn.collapsed is not None
    assert drawn.collapsed < 1e-2 * drawn.spread
    assert kept.collapsed is not None
    assert kept.collapsed > 0.3 * kept.spread


@pytest.mark.parametrize("at_first", [True, False])
def test_a_compiled_step_trains_in_the_mode_in_which_it_was_read(at_first: bool) -> None:
    def run() -> None:
        model, optimiser = Net(), optim.SGD(learning_rate=1e-2)
        optimiser.init(model.trainable_parameters())  # MLX reads a function anew where its state has another form
        state = [model.state, optimiser.state]
        model.train(at_first)

        def step(x: mx.array, y: mx.array) -> mx.array:
            value, found = nn.value_and_grad(model, loss)(model, x, y)
            optimiser.update(model, found)
            return value

        compiled = mx.compile(step, inputs=state, outputs=state)
        for _ in range(12):
            mx.eval(compiled(X[:20], Y[:20]), state)
            model.train(not at_first)

    mx.enable_compile()
    try:
        (found,), _ = discovered(run)
    finally:
        mx.disable_compile()
    kinds = {name for step in found.seen(Step) for name in step.calls}
    assert ("forward" in kinds) is at_first
    assert ("forward-in-eval" in kinds) is not at_first
    assert {"backward", "step"} <= kinds

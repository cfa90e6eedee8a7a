"""A training of a tree of arrays in MLX, after its end: parted into a model and a loss, with what its loss was asked for."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_map

from sleuth.adapters.mlx.arrays import native
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Evaluation, Frame, Role, Step
from tests.watch.test_mlx_trees import Watched, batches, discovered, forward, init

RNG = np.random.default_rng(8)
HELD_OUT = mx.array(RNG.normal(size=(60, 5)).astype(np.float32))
WANTED = mx.array(RNG.normal(size=(60, 1)).astype(np.float32))
STEPS = 40

Loss = Callable[..., mx.array]


def squares(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    return mx.mean((forward(weights, x) - y) ** 2)


def penalty(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    return nn.losses.mse_loss(forward(weights, x), y) + 1e-3 * mx.sum(weights["out"]["w"] ** 2)


def twice(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    """The answer goes into the loss in two ways."""
    answer = forward(weights, x)
    return mx.mean(mx.logaddexp(answer, mx.zeros_like(answer)) - answer * y)


def transposed(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    turned = tree_map(lambda w: w.T, weights)
    return squares(tree_map(lambda w: w.T, turned), x, y)


def behind_our_back(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    """A view that no operation is heard of."""
    return squares(tree_map(lambda w: w.mT.mT if w.ndim > 1 else w, weights), x, y)


def trained(loss: Loss, take: Callable[..., Any], every: int = 10) -> tuple[Watched, Any]:
    def run() -> Any:
        weights = init()
        for number, (x, y) in enumerate(batches(STEPS), 1):
            weights = take(loss, weights, x, y)
            mx.eval(weights)
            if number % every == 0:
                loss(weights, HELD_OUT, WANTED).item()
        return weights

    (found,), weights = discovered(run)
    return found, weights


def by_hand(loss: Loss, weights: Any, x: mx.array, y: mx.array) -> Any:
    _, gradients = mx.value_and_grad(loss)(weights, x, y)
    return tree_map(lambda w, g: w - 0.01 * g, weights, gradients)


def by_adam() -> Callable[..., Any]:
    optimiser = optim.Adam(learning_rate=1e-2)

    def take(loss: Loss, weights: Any, x: mx.array, y: mx.array) -> Any:
        _, gradients = mx.value_and_grad(loss)(weights, x, y)
        return optimiser.apply_gradients(gradients, weights)

    return take


def kept_of(found: Watched) -> Kept:
    kept = found.watching.take_kept()
    assert kept is not None
    return kept


@pytest.mark.parametrize("loss", [squares, penalty, twice, transposed])
@pytest.mark.parametrize("adam", [False, True])
def test_the_model_and_the_loss_together_say_what_the_function_says(loss: Loss, adam: bool) -> None:
    found, _ = trained(loss, by_adam() if adam else by_hand)
    kept = kept_of(found)
    assert kept.at_start, kept.forbidden
    model, again = kept.subject.model, kept.subject.loss
    assert again is not None
    x, y = batches(STEPS)[-1]
    assert float(again(model(x), y).item()) == pytest.approx(float(loss(init(), x, y).item()), rel=1e-4)
    assert np.allclose(np.array(model(x)), np.array(forward(init(), x)), atol=1e-5)
    parts = native(kept.train[-1].parts)
    assert (kept.train[-1].step, parts.inputs.shape, parts.target.shape) == (STEPS - 1, (20, 5), (20, 1))
    assert type(kept.subject.optimizer).__name__ == ("Adam" if adam else "NoneType")


@pytest.mark.parametrize("loss", [squares, penalty, twice])
def test_the_loss_that_is_asked_for_between_steps_is_a_validation(loss: Loss) -> None:
    found, weights = trained(loss, by_hand)
    told = found.seen(Evaluation)
    assert [e.step for e in told][-1] == STEPS - 1 or len(told) >= 3  # a step is over when the next begins
    assert told[-1].metrics["loss"] == pytest.approx(float(loss(weights, HELD_OUT, WANTED).item()), rel=1e-4)
    groups = [g for g in kept_of(found).validation if g.of_its_own]
    assert [g.samples for g in groups] == [60]
    assert np.array_equal(groups[0].batches[0].parts.target, np.array(WANTED))


def test_nothing_stands_in_the_place_of_an_operation_afterwards() -> None:
    before = {name: vars(mx)[name] for name in ("mean", "add")} | {"+": mx.array.__add__}
    trained(squares, by_hand)
    trained(penalty, by_hand)
    assert before == {name: vars(mx)[name] for name in ("mean", "add")} | {"+": mx.array.__add__}


def test_a_mask_that_comes_with_each_batch_keeps_it_from_being_done_again() -> None:
    def masked(weights: Any, x: mx.array, y: mx.array, mask: mx.array) -> mx.array:
        return mx.sum(mask * (forward(weights, x) - y) ** 2) / mx.sum(mask)

    def run() -> None:
        weights = init()
        for x, y in batches(STEPS):
            _, gradients = mx.value_and_grad(masked)(weights, x, y, (y > 2).astype(mx.float32))
            weights = tree_map(lambda w, g: w - 0.01 * g, weights, gradients)
            mx.eval(weights)

    (found,), _ = discovered(run)
    kept = kept_of(found)
    assert not kept.at_start
    assert kept.forbidden


def test_where_weights_go_another_way_that_is_not_heard_nothing_is_done_again() -> None:
    found, _ = trained(behind_our_back, by_hand)
    kept = kept_of(found)
    assert not kept.at_start
    assert "something else goes into it" in kept.forbidden or kept.forbidden


def test_steps_whose_weights_nobody_takes_are_steps_that_change_nothing() -> None:
    optimiser = optim.SGD(learning_rate=1e-2)

    def run() -> None:
        weights, gradient = init(), mx.value_and_grad(squares)
        for x, y in batches(STEPS):
            _, gradients = gradient(weights, x, y)
            optimiser.apply_gradients(gradients, weights)
            mx.eval(weights, optimiser.state)

    (found,), _ = discovered(run)
    assert len(found.seen(Step)) > STEPS // 2
    updates = [f for f in found.seen(Frame) if f.role is Role.UPDATE]
    assert len(updates) > 6
    assert not any(f.table[:, 5].any() for f in updates)

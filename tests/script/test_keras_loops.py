"""Loops of one's own around an optimiser of Keras under `sleuth run`, on the torch backend, as people write them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import pytest
import torch
from keras import layers

from sleuth.adapters.keras.patches import _places
from sleuth.core.errors import EnoughSteps
from sleuth.core.report import Report
from sleuth.session.script import Options, Session
from tests.material import digits

X, Y = (torch.as_tensor(part) for part in digits())
X = X.float()
SCORES = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
STEPS = 72
BACKWARD = torch.Tensor.backward
HEALTHY: dict[str, Callable[[], None]] = {}


def healthy(loop: Callable[[], None]) -> Callable[[], None]:
    HEALTHY[loop.__name__] = loop
    return loop


def reports(script: Callable[[], None], folder: Path, steps: int | None = None) -> list[Report]:
    keras.utils.set_random_seed(1)
    session = Session("train.py", Options(directory=folder, steps=steps))
    for name in ("torch", "keras"):
        session.attend(name)
    error: BaseException | None = None
    try:
        script()
    except EnoughSteps as enough:
        error = enough
    session.end(error)
    assert not _places
    assert torch.Tensor.backward is BACKWARD
    return [told.report for told in session.told]


def network() -> keras.Model:
    return keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])


def batches(steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    dice = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = torch.randint(len(X), (32,), generator=dice)
        yield X[rows], Y[rows]


def step(model: keras.Model, optimiser: Any, loss: Any, clear: Callable[[], None] = lambda: None) -> None:
    loss.backward()
    weights = model.trainable_variables
    with torch.no_grad():
        optimiser.apply([v.value.grad for v in weights], weights)
    clear()


@healthy
def cleared_by_the_model() -> None:
    model, optimiser = network(), keras.optimizers.Adam(3e-3)
    for x, y in batches():
        model.zero_grad()
        step(model, optimiser, SCORES(y, model(x, training=True)))


@healthy
def cleared_one_by_one() -> None:
    model, optimiser = network(), keras.optimizers.Adam(3e-3)
    for x, y in batches():
        step(model, optimiser, SCORES(y, model(x, training=True)))
        for variable in model.trainable_variables:
            variable.value.grad = None


@healthy
def filled_with_zeros() -> None:
    model, optimiser = network(), keras.optimizers.SGD(0.05)
    for x, y in batches():
        step(model, optimiser, SCORES(y, model(x, training=True)))
        for variable in model.trainable_variables:
            variable.value.grad.zero_()


@healthy
def taken_hold_of_and_cleared_before_the_step() -> None:
    model, optimiser = network(), keras.optimizers.Adam(3e-3)
    for x, y in batches():
        SCORES(y, model(x, training=True)).backward()
        gradients = [v.value.grad for v in model.trainable_variables]
        model.zero_grad()
        with torch.no_grad():
            optimiser.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


@healthy
def asked_for_as_values() -> None:
    model, optimiser = network(), keras.optimizers.Adam(3e-3)
    for x, y in batches():
        weights = model.trainable_variables
        loss = SCORES(y, model(x, training=True))
        gradients = torch.autograd.grad(loss, [v.value for v in weights])
        with torch.no_grad():
            optimiser.apply(gradients, weights)


@healthy
def added_up() -> None:
    model, optimiser = network(), keras.optimizers.Adam(3e-3)
    for number, (x, y) in enumerate(batches(2 * STEPS)):
        loss = SCORES(y, model(x, training=True)) / 2
        if number % 2:
            step(model, optimiser, loss, model.zero_grad)
        else:
            loss.backward()


@healthy
def with_a_loss_that_is_scaled() -> None:
    model, optimiser = network(), keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(3e-3), initial_scale=64.0)
    for x, y in batches():
        model.zero_grad()
        step(model, optimiser, optimiser.scale_loss(SCORES(y, model(x, training=True))))


@healthy
def two_that_play_against_each_other() -> None:
    painter = keras.Sequential([keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dense(64)])
    critic = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
    first, second = (keras.optimizers.Adam(1e-3) for _ in range(2))
    judge = keras.losses.BinaryCrossentropy(from_logits=True)
    for x, _ in batches():
        painted = painter(torch.randn(32, 8), training=True)
        critic.zero_grad()
        real, false = torch.ones(32, 1), torch.zeros(32, 1)
        step(critic, first, judge(real, critic(x, training=True)) + judge(false, critic(painted.detach(), training=True)))
        painter.zero_grad()
        step(painter, second, judge(real, critic(painted, training=True)))


@healthy
def one_fold_after_the_other() -> None:
    for _ in range(3):
        cleared_by_the_model()


@healthy
def after_a_fit() -> None:
    model = network()
    model.compile(keras.optimizers.Adam(3e-3), SCORES)
    model.fit(X[:640].numpy(), Y[:640].numpy(), epochs=3, verbose=0)
    optimiser = keras.optimizers.SGD(0.01)
    for x, y in batches():
        model.zero_grad()
        step(model, optimiser, SCORES(y, model(x, training=True)))


@healthy
def with_a_validation() -> None:
    inputs = keras.Input((64,))
    hidden = layers.Dropout(0.2)(layers.BatchNormalization()(layers.Dense(32, activation="relu")(inputs)))
    model, optimiser = keras.Model(inputs, layers.Dense(10)(hidden)), keras.optimizers.Adam(3e-3)
    for _ in range(4):
        for x, y in batches(24):
            model.zero_grad()
            step(model, optimiser, SCORES(y, model(x, training=True)))
        with torch.no_grad():
            for begin in range(0, 320, 64):
                model(X[begin : begin + 64], training=False)


# Asked every time; the others at length.
QUICK = ("cleared_one_by_one", "taken_hold_of_and_cleared_before_the_step", "added_up", "two_that_play_against_each_other")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in HEALTHY])
def test_a_healthy_loop_is_left_in_peace(name: str, tmp_path: Path) -> None:
    found = reports(HEALTHY[name], tmp_path)
    assert not [f for report in found for f in report.findings if f.severity.value in ("error", "warning")]
    # Both take turns: whose gradient is whose is not known.
    watched = 0 if name == "two_that_play_against_each_other" else STEPS - 1
    assert max(report.steps for report in found) >= watched
    assert bool(watched) or "take turns" in " ".join(found[0].notes)


def nobody_clears() -> None:
    model, optimiser = network(), keras.optimizers.SGD(0.05)
    for x, y in batches():
        loss = SCORES(y, model(x, training=True))
        loss.backward()  # what piles up
        weights = model.trainable_variables
        with torch.no_grad():
            optimiser.apply([v.value.grad for v in weights], weights)


def test_gradients_that_pile_up_are_named_with_their_line(tmp_path: Path) -> None:
    (report,) = reports(nobody_clears, tmp_path)
    assert report.culprits[0].finding.name == "missing-zero-grad"
    place = report.culprits[0].finding.location
    assert place is not None
    assert "# what piles up" in place.text
    assert report.framework == "keras"


def test_folds_have_a_report_each(tmp_path: Path) -> None:
    assert [report.steps for report in reports(one_fold_after_the_other, tmp_path)] == [STEPS - 1] * 3


def test_a_loop_stops_after_as_many_steps_as_were_asked_for(tmp_path: Path) -> None:
    (report,) = reports(cleared_by_the_model, tmp_path, steps=20)
    assert report.steps == 20


def test_weights_are_the_same_with_and_without_us(tmp_path: Path) -> None:
    made: list[keras.Model] = []

    def loop() -> None:
        keras.utils.set_random_seed(3)
        model, optimiser = network(), keras.optimizers.Adam(3e-3)
        made.append(model)
        for x, y in batches(24):
            model.zero_grad()
            step(model, optimiser, SCORES(y, model(x, training=True)))

    loop()
    reports(loop, tmp_path)
    first, second = ([v.value.detach() for v in model.variables] for model in made)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

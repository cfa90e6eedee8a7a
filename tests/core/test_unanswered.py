"""Nothing found is not yet health: what a training has to show."""

import numpy as np
import pytest

from sleuth.core.history import History, Seen
from sleuth.core.observation import CallKind, Evaluation, Frame, Role, Split, Step
from sleuth.core.reading.unanswered import backward_holds, little_examined, unanswered
from sleuth.core.statistics import COLUMNS
from sleuth.core.trial import GradientCheck, GradientError

CALLS = (CallKind.FORWARD, CallKind.BACKWARD, CallKind.STEP)
NOISE = np.random.default_rng(0).normal(size=400) * 0.1


def training(*losses: float | None, optimisers: int = 1, told: tuple[float, ...] = (), heard: bool = True) -> Seen:
    history = History()
    for i, loss in enumerate(losses):
        history.add(Step(i, loss, 0.1, calls=CALLS, counts=dict.fromkeys(CALLS, 1), optimiser=i % optimisers, heard=heard))
    for i, value in enumerate(told):
        history.add(Evaluation(i, Split.VALIDATION, {"loss": value}))
    return Seen(history)


FALLING = 2.3 * np.exp(-np.arange(400) / 100) + NOISE
QUICK = np.concatenate([[2.3, 1.0, 0.3], 0.02 + 0.001 * np.abs(NOISE[:97])])
SLOW = 2.3 - 0.001 * np.arange(400) + NOISE
FLAT = 2.3 + NOISE
RISING = 7.4 + 0.02 * np.arange(400) + NOISE
THROWN_UP = np.concatenate([[2.3], 9.0 * np.exp(-np.arange(399) / 400) + NOISE[1:]])


@pytest.mark.parametrize("losses", [FALLING, QUICK, SLOW, FALLING[:40]], ids=["falling", "quick", "slow", "short"])
def test_a_loss_that_falls_beyond_its_noise_leaves_nothing_open(losses: np.ndarray) -> None:
    assert unanswered(training(*losses)) == ""


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        (FALLING[:3], "only 3 steps were heard"),
        (FALLING[:1], "only one step was heard"),
        (FLAT, "no fall beyond its noise"),
        (2.3 - 1e-5 * np.arange(400), "no fall beyond its noise"),
        (RISING, "ends above its start"),
        (THROWN_UP, "ends above its start"),
    ],
    ids=["three", "one", "flat", "hardly", "rising", "thrown-up"],
)
def test_what_a_training_has_not_shown_is_said_with_what_to_do(losses: np.ndarray, said: str) -> None:
    sentence = unanswered(training(*losses))
    assert said in sentence
    assert sentence.endswith(".")
    assert ";" in sentence, "what to do"


def test_two_players_are_not_asked_for_a_loss_that_falls() -> None:
    assert unanswered(training(*FLAT, optimisers=2)) == ""


def test_without_a_loss_only_what_was_told_can_tell() -> None:
    unheard = [None] * 40
    assert "no loss was heard" in unanswered(training(*unheard, heard=False))
    assert unanswered(training(*unheard, heard=False, told=(2.0, 1.0))) == ""


def test_a_validation_that_gets_better_answers_for_a_flat_loss() -> None:
    assert unanswered(training(*FLAT, told=(2.0, 1.0))) == ""


def test_a_few_checks_that_found_nothing_are_no_health() -> None:
    blind = {f"check-{i}": "what the target is cannot be told" for i in range(83)}
    assert "83 of 108 could not look, most often because what the target is cannot be told" in little_examined(25, blind)
    assert little_examined(40, blind) == ""
    assert little_examined(0, {}) == "", "nothing was asked"


WEIGHTS = ("W1", "b1", "W2", "b2")


def tried(*errors: float, by_hand: bool = True, repeat: str = "") -> Seen:
    """The gradients of the first weights, as far as there are errors of them."""
    history = History()
    history.add(Frame(0, Role.WEIGHT, WEIGHTS, np.zeros((len(WEIGHTS), len(COLUMNS)))))
    found = tuple(GradientError(path, error, 1.0, 1.0, 0.0) for path, error in zip(WEIGHTS, errors, strict=False))
    history.add(GradientCheck(found, True, repeat, by_hand=by_hand))
    return Seen(history)


def test_a_backward_by_hand_that_is_the_derivative_of_the_loss_holds() -> None:
    assert backward_holds(tried(1e-9, 1e-9, 1e-9, 1e-9))
    assert backward_holds(tried(1e-9, 1e-9)), "the others were not shown"


@pytest.mark.parametrize(
    "seen",
    [
        tried(1e-9, 1e-9, 1e-9, 0.5),
        tried(1e-9),
        tried(),
        tried(1e-9, 1e-9, 1e-9, 1e-9, by_hand=False),
        tried(1e-9, 1e-9, 1e-9, 1e-9, repeat="accumulates"),
        training(*FALLING),
    ],
    ids=["one-wrong", "too-few", "none", "a-framework's", "piles-up", "not-tried"],
)
def test_what_was_not_tried_or_is_not_the_derivative_does_not(seen: Seen) -> None:
    assert not backward_holds(seen)

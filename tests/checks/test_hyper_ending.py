"""Whether a training ended too early is read from real losses, and only where its end was seen."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import examine
from sleuth.checks import all_checks
from sleuth.core.engine import Engine, Judgement
from sleuth.core.observation import Ending, Evaluation, Split, Step
from sleuth.core.settings import Configuration
from tests.checks.looking import training
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

KIT = TorchKit()
NAME = "stopped-too-early"


def losses(
    steps: int, lr: float = 1e-3, schedule: Callable[[int], float] | None = None, seed: int = 0
) -> list[tuple[float, float]]:
    """(loss, rate) of each step of a real training on digits."""
    torch.manual_seed(seed)
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    x, y = (torch.as_tensor(a) for a in digits())
    found = []
    for step in range(steps):
        rate = lr * (schedule(step) if schedule else 1.0)
        optimiser.param_groups[0]["lr"] = rate
        rows = torch.randint(0, len(x), (32,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append((float(loss.detach()), rate))
    return found


def judge(course: list[tuple[float, float]], end: Ending | None = None, validation: list[float] | None = None) -> Judgement:
    engine = Engine(all_checks(), Configuration(select=(NAME,)))
    for step, (loss, rate) in enumerate(course, start=1):
        engine.emit(Step(step, loss, rate))
    for number, loss in enumerate(validation or (), start=1):
        engine.emit(Evaluation(number * 10, Split.VALIDATION, {"loss": loss}))
    engine.emit(end or Ending(len(course)))
    return engine.judge()


@pytest.mark.parametrize("steps", [60, 100, 150])
def test_a_training_that_ends_on_the_way_down_is_named(steps: int) -> None:
    (finding,) = judge(losses(steps)).findings
    assert finding.numbers["expected_further_fall"] > 0.15
    assert finding.fix.startswith("Train")
    assert finding.last_step == steps


def test_the_predicted_fall_is_near_the_real_one() -> None:
    course = losses(300)
    (finding,) = judge(course[:150]).findings
    real = finding.numbers["end"] - float(np.mean([loss for loss, _ in course[-10:]]))
    assert real / 2 < finding.numbers["expected_further_fall"] < 2 * real


@pytest.mark.parametrize("steps", [1000, 2000])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_training_that_has_levelled_off_is_not_accused(steps: int, seed: int) -> None:
    assert NAME in judge(losses(steps, seed=seed)).clear


@pytest.mark.parametrize("seed", range(8))
def test_a_training_that_never_learned_is_not_called_too_short(seed: int) -> None:
    assert NAME in judge(losses(200, lr=0.0, seed=seed)).clear


@pytest.mark.parametrize("seed", range(8))
def test_losses_that_jump_about_are_not_taken_for_a_fall(seed: int) -> None:
    """One patient a step through a model that does not change: the losses differ by more than their mean."""
    torch.manual_seed(seed)
    model = KIT.mlp(10, 8, 1)
    x, y = (torch.as_tensor(a) for a in diabetes())
    with torch.no_grad():
        errors = ((model(x) - y) ** 2)[torch.randperm(len(x))[:100], 0]
    assert NAME in judge([(float(error), 1e-3) for error in errors]).clear


def test_a_schedule_that_ran_out_ended_as_planned() -> None:
    reason = judge(losses(120, schedule=lambda step: 1 - step / 120)).not_examined[NAME]
    assert "ended as planned" in reason


def test_validation_that_rises_says_that_it_was_time() -> None:
    assert NAME in judge(losses(100), validation=[1.0, 0.8, 0.7, 0.8, 0.9, 1.0]).clear
    assert judge(losses(100), validation=[1.0, 0.9, 0.8, 0.7, 0.6, 0.5]).findings


@pytest.mark.parametrize("how", ["interrupted", "failed", "stopped"])
def test_a_training_that_did_not_run_out_is_not_judged(how: str) -> None:
    assert how in judge(losses(100), Ending(100, how)).not_examined[NAME]


def test_a_loss_that_was_not_finite_is_not_judged() -> None:
    assert judge([*losses(60), (None, 1e-3)]).not_examined[NAME] == "the loss became NaN or infinite"


def test_examine_says_that_it_sees_no_end() -> None:
    report = examine(training(KIT.mlp(10, 4, 1), nn.MSELoss(), diabetes()), select=[NAME], budget_seconds=5, progress=False)
    assert report.not_examined == {NAME: "examine does not see the end of a training"}

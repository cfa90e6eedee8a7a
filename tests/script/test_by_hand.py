"""Weights that a script writes itself, and backwards that are for something else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.core.observation import Call, Step
from sleuth.core.report import Report
from tests.script.test_discovery import X, batches, heard, mlp, no_settings, stored

__all__ = ["no_settings"]

ROUNDS = 40


def in_place(parameter: torch.Tensor) -> None:
    with torch.no_grad():
        parameter -= 0.1 * parameter.grad


def through_data(parameter: torch.Tensor) -> None:
    parameter.data.add_(parameter.grad, alpha=-0.1)


def by_new_data(parameter: torch.Tensor) -> None:
    parameter.data = parameter.data - 0.1 * parameter.grad


def train(
    update: Callable[[torch.Tensor], None], *, clear: bool = True, clip: str = "", late: bool = False
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = mlp()
    for x, y in batches(ROUNDS):
        functional.cross_entropy(model(x), y).backward()
        if clip and not late:
            getattr(nn.utils, clip)(model.parameters(), 0.5)
        for parameter in model.parameters():
            update(parameter)
        if clip and late:
            getattr(nn.utils, clip)(model.parameters(), 0.5)
        for parameter in model.parameters() if clear else ():
            parameter.grad = None
    return [*model.parameters(), torch.rand(3)]


@pytest.mark.parametrize("update", [in_place, through_data, by_new_data])
def test_steps_that_are_written_by_hand_are_heard_and_change_nothing(update, tmp_path: Path) -> None:
    found: list[list[torch.Tensor]] = []
    session = heard(lambda: found.append(train(update)), tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found[0], train(update), strict=True))
    report = session.main().report
    assert (report.status, report.steps) == ("healthy", ROUNDS - 4)
    assert {"missing-zero-grad", "weights-do-not-change"} <= set(report.clear)
    assert stored(session, Step)[5].calls == ("forward", "backward", "step")
    line = next(call.location for call in stored(session, Call) if call.kind == "step")
    assert "parameter" in line.text
    assert "0.1" in line.text


def test_gradients_that_nobody_clears_by_hand_pile_up(tmp_path: Path) -> None:
    report = heard(lambda: train(in_place, clear=False), tmp_path).main().report
    assert culprits(report)[0] == "missing-zero-grad"


def test_an_update_that_is_thrown_away_is_named_with_its_line(tmp_path: Path) -> None:
    def update(parameter: torch.Tensor) -> None:
        with torch.no_grad():
            torch.sub(parameter, parameter.grad, alpha=0.1)

    report = heard(lambda: train(update), tmp_path).main().report
    assert culprits(report) == ["weights-do-not-change"]
    assert "torch.sub(" in report.culprits[0].finding.location.text
    assert "p -= lr * p.grad" in report.culprits[0].finding.fix


def test_tensors_of_no_module_and_the_steps_asked_for(tmp_path: Path) -> None:
    def script() -> None:
        weight = torch.zeros(X.shape[1], 10, requires_grad=True)
        for x, y in batches(ROUNDS):
            functional.cross_entropy(x @ weight, y).backward()
            in_place(weight)
            weight.grad.zero_()

    report = heard(script, tmp_path, steps=12).main().report
    assert (report.status, report.steps) == ("healthy", 12)


def importances() -> None:
    model, total = mlp(), torch.zeros(16)
    for x, y in batches(ROUNDS):
        functional.cross_entropy(model(x), y).backward()
        total += (model[0].weight * model[0].weight.grad).sum(1).abs()  # of each unit, to prune
        model.zero_grad()


def stopwatch() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16)
    for _ in range(ROUNDS):
        model(torch.randn(4, 3, 8)).sum().backward()
        model.zero_grad()


def attack() -> None:
    model, picture = mlp(), X[:1].clone().requires_grad_()
    for _ in range(ROUNDS):
        functional.cross_entropy(model(picture), torch.tensor([3])).backward()
        with torch.no_grad():
            picture += 0.01 * picture.grad.sign()
        picture.grad = None


@pytest.mark.parametrize("script", [importances, stopwatch, attack])
def test_backwards_that_are_for_something_else_are_no_training(script, tmp_path: Path) -> None:
    report = heard(script, tmp_path).main().report
    assert report.status == "unknown"
    assert "no weights were written by hand" in report.notes[0]
    assert torch.overrides._get_current_function_mode_stack() == []


@pytest.mark.parametrize("clip", ["clip_grad_norm_", "clip_grad_value_"])
@pytest.mark.parametrize("update", [in_place, through_data, by_new_data])
def test_what_is_clipped_before_the_first_write_is_clipped_in_its_place(update, clip, tmp_path: Path) -> None:
    session = heard(lambda: train(update, clip=clip), tmp_path)
    report = session.main().report
    assert report.status == "healthy"
    assert {"clipping-misplaced", "missing-zero-grad"} <= set(report.clear)
    assert stored(session, Step)[5].calls == ("forward", "backward", "clip", "step")


def test_clipping_after_the_last_write_is_too_late(tmp_path: Path) -> None:
    report = heard(lambda: train(in_place, clip="clip_grad_norm_", late=True), tmp_path).main().report
    assert "clipping-misplaced" in culprits(report)


@pytest.mark.parametrize("update", [in_place, through_data, by_new_data])
def test_the_rate_is_what_a_weight_moves_by_against_its_gradient(update, tmp_path: Path) -> None:
    steps = stored(heard(lambda: train(update), tmp_path), Step)
    assert [step.lr for step in steps] == pytest.approx([0.1] * len(steps), rel=1e-3)


def test_a_rate_that_the_loop_lowers_itself_is_followed(tmp_path: Path) -> None:
    def script() -> None:
        model = mlp()
        for number, (x, y) in enumerate(batches(ROUNDS)):
            functional.cross_entropy(model(x), y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= (0.1 if number < 10 else 0.01) * parameter.grad
                    parameter.grad = None

    rates = [step.lr for step in stored(heard(script, tmp_path), Step)]
    assert rates[0] == pytest.approx(0.1, rel=1e-3)
    assert rates[-1] == pytest.approx(0.01, rel=1e-3)


class Momentum:
    """An optimiser of somebody's own, of no class of torch."""

    def __init__(self, parameters) -> None:
        self.parameters = list(parameters)
        self.velocity = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        for parameter, velocity in zip(self.parameters, self.velocity, strict=True):
            velocity.mul_(0.9).add_(parameter.grad)
            parameter.sub_(0.02 * velocity)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad.zero_()


@pytest.mark.parametrize(("clear", "found"), [(True, []), (False, ["missing-zero-grad"])])
def test_an_optimiser_of_ones_own_is_heard_and_its_rate_is_not_guessed(clear, found, tmp_path: Path) -> None:
    def script() -> None:
        torch.manual_seed(0)
        model = mlp()
        own = Momentum(model.parameters())
        for x, y in batches(ROUNDS):
            functional.cross_entropy(model(x), y).backward()
            own.step()
            if clear:
                own.zero_grad()

    session = heard(script, tmp_path)
    assert culprits(session.main().report)[:1] == found
    assert all(step.lr is None for step in stored(session, Step))


def test_experiments_are_made_with_the_rate_that_was_measured(tmp_path: Path) -> None:
    report = heard(lambda: train(in_place), tmp_path, budget=20).main().report
    assert {"cannot-overfit-one-batch", "learning-rate-too-high", "gradient-wrong"} <= set(report.clear)


def culprits(report: Report) -> list[str]:
    return [culprit.finding.name for culprit in report.culprits]

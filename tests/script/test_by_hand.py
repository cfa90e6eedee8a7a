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


def train(update: Callable[[torch.Tensor], None], *, clear: bool = True) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = mlp()
    for x, y in batches(ROUNDS):
        functional.cross_entropy(model(x), y).backward()
        for parameter in model.parameters():
            update(parameter)
            if clear:
                parameter.grad = None
    return [*model.parameters(), torch.rand(3)]


@pytest.mark.parametrize("update", [in_place, through_data, by_new_data])
def test_steps_that_are_written_by_hand_are_heard_and_change_nothing(update, tmp_path: Path) -> None:
    found: list[list[torch.Tensor]] = []
    session = heard(lambda: found.append(train(update)), tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found[0], train(update), strict=True))
    report = session.main().report
    assert (report.status, report.steps) == ("healthy", ROUNDS - 4), report.unanswered
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


def culprits(report: Report) -> list[str]:
    return [culprit.finding.name for culprit in report.culprits]

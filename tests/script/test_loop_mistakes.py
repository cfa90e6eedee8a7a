"""Mistakes in the loops of scripts, each beside what looks like it and is meant."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.script.test_discovery import X, Y, batches, heard, mlp, no_settings

__all__ = ["no_settings"]


def model_with_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10))


def fit(model: nn.Module, steps: int = 40, before: Callable[[], None] = lambda: None) -> None:
    optimiser = torch.optim.SGD(model.parameters(), 0.05)
    for x, y in batches(steps):
        before()
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = model_with_norm(), nn.Linear(10, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(x))


def flag_by_hand() -> None:
    model = Wrapped()
    model.eval()
    model.training = True  # here
    fit(model)


def norms_stopped() -> None:
    model = Wrapped()
    for layer in model.modules():
        layer.train(not isinstance(layer, nn.BatchNorm1d | nn.Dropout))
    fit(model)


def trunk_stopped() -> None:
    model = Wrapped()
    model.trunk.eval()
    fit(model)


def validate(model: nn.Module, free: bool) -> float:  # here
    model.eval()
    with torch.no_grad() if free else torch.enable_grad():
        return functional.cross_entropy(model(X[:200]), Y[:200]).item()


def validated_with_graph(free: bool = False) -> None:
    model = model_with_norm()
    for _ in range(5):
        fit(model.train(), 8)
        validate(model, free)


def schedule_first(after: bool = False) -> None:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9)
    for epoch in range(6):
        if not after or epoch:
            schedule.step()  # here
        for x, y in batches(6):
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()


def only_the_last_is_left() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for number, (x, y) in enumerate(batches(80)):
        model.zero_grad(set_to_none=False)  # here
        (functional.cross_entropy(model(x), y) / 4).backward()
        if number % 4 == 3:
            optimiser.step()


def attacked() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in batches(40):
        near = x.clone().requires_grad_()
        functional.cross_entropy(model(near), y).backward()
        optimiser.zero_grad()
        functional.cross_entropy(model(x + 0.02 * near.grad.sign()), y).backward()
        optimiser.step()


def gradients_of_tasks() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in batches(40):
        parts = []
        for half in (slice(0, 16), slice(16, 32)):
            optimiser.zero_grad()
            functional.cross_entropy(model(x[half]), y[half]).backward()
            parts.append([p.grad.clone() for p in model.parameters()])
        for parameter, one, other in zip(model.parameters(), *parts, strict=True):
            parameter.grad = (one + other) / 2
        optimiser.step()


def sharpness_aware() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)

    def backward(x: torch.Tensor, y: torch.Tensor) -> None:
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()

    for x, y in batches(40):
        backward(x, y)
        moves = [0.02 * p.grad for p in model.parameters()]
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter += move
        backward(x, y)
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter -= move
        optimiser.step()


def quasi_newton() -> None:
    model = mlp()
    optimiser = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=4)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(X[:300]), Y[:300])
        loss.backward()
        return loss

    for _ in range(12):
        optimiser.step(closure)


def rate_that_fades(rounds: int = 1300, factor: float = 0.99) -> None:
    model, rate = nn.Linear(64, 10), 0.1
    optimiser = torch.optim.SGD(model.parameters(), rate)
    for x, y in batches(rounds):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        rate *= factor
        optimiser.param_groups[0]["lr"] = rate  # here


def rate_that_fades_late() -> None:
    rate_that_fades(1000)  # for a tenth of it


def rate_that_only_rises(shape: Callable[[int], float] = lambda step: (step + 1) / 60) -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, shape)  # here
    for x, y in batches(900):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        schedule.step()


def rate_that_is_looked_for() -> None:
    rate_that_only_rises(lambda step: 1e-4 * 1.015**step)


def players(own: bool = False, frozen: bool = False) -> None:
    maker, judge = mlp(8, 64), mlp(64, 1)
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    for_judge = torch.optim.SGD(judge.parameters(), 0.01)
    for_maker = torch.optim.SGD((maker if own else judge).parameters(), 0.01)  # here
    if frozen:  # only a source of samples
        maker.eval()
    for x, _ in batches(16):
        made = maker(torch.randn(32, 8))
        for_judge.zero_grad()
        real = functional.binary_cross_entropy_with_logits(judge(x), ones)
        (real + functional.binary_cross_entropy_with_logits(judge(made.detach()), zeros)).backward()
        for_judge.step()
        for_maker.zero_grad()
        functional.binary_cross_entropy_with_logits(judge(made), ones).backward()
        for_maker.step()


SICK = {
    flag_by_hand: "training-in-eval-mode",
    validated_with_graph: "validation-builds-graph",
    schedule_first: "scheduler-before-optimiser",
    only_the_last_is_left: "gradients-erased",
    rate_that_fades: "learning-rate-decayed-away",
    rate_that_only_rises: "learning-rate-too-high",
    players: "parameters-not-optimised",
}
MEANT = {
    "norms stopped": (norms_stopped, "training-in-eval-mode"),
    "trunk stopped": (trunk_stopped, "training-in-eval-mode"),
    "validated without graph": (lambda: validated_with_graph(free=True), "validation-builds-graph"),
    "schedule after": (lambda: schedule_first(after=True), "scheduler-before-optimiser"),
    "attacked": (attacked, "gradients-erased"),
    "gradients of tasks": (gradients_of_tasks, "gradients-erased"),
    "sharpness aware": (sharpness_aware, "gradients-erased"),
    "quasi-newton": (quasi_newton, "gradients-erased"),
    "fades late": (rate_that_fades_late, "learning-rate-decayed-away"),
    "looked for": (rate_that_is_looked_for, "learning-rate-too-high"),
    "players": (lambda: players(own=True), "parameters-not-optimised"),
    "one player is frozen": (lambda: players(frozen=True), "parameters-not-optimised"),
}


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("script", SICK, ids=lambda script: script.__name__)
def test_the_mistake_is_the_first_culprit_and_its_line_is_named(script: Callable[[], None], tmp_path: Path) -> None:
    torch.manual_seed(0)
    report = heard(script, tmp_path).main().report
    assert [culprit.finding.name for culprit in report.culprits][:1] == [SICK[script]]
    assert report.culprits[0].finding.location.text.endswith("# here")


@pytest.mark.parametrize("name", MEANT)
def test_what_looks_like_it_and_is_meant_is_not_accused(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    script, check = MEANT[name]
    report = heard(script, tmp_path).main().report
    assert check not in [finding.name for finding in report.findings]


def test_a_model_whose_head_is_replaced_is_trained_again(tmp_path: Path) -> None:
    """What the first watch keeps for experiments, an optimiser of its own included, does not disturb the second."""
    plain = nn.Module.__call__

    def script() -> None:
        model = Wrapped()
        fit(model, 20)
        model.head = nn.Linear(10, 10)
        fit(copy.deepcopy(model), 4)
        fit(model, 20)

    session = heard(script, tmp_path, budget=1e-3, every=1)
    assert [told.report.steps for told in session.told] == [20, 4, 20]
    assert nn.Module.__call__ is plain

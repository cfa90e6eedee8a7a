"""Loops whose illness shows beside what is asked first: totals, equal parts, a second look, values that feed on themselves."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

import sleuth
from sleuth import Report
from sleuth.core.reading.curve import Curve, adds_up
from sleuth.testing import Loop
from tests.material import digits
from tests.watched import watched

X, Y = (torch.as_tensor(a) for a in digits())


def net(*widths: int) -> nn.Sequential:
    torch.manual_seed(0)
    sizes = widths or (64, 24, 10)
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], sizes[2]))


def some(size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randint(0, len(X), (size,))
    return X[rows], Y[rows]


def names(report: Report) -> list[str]:
    return [finding.name for finding in report.findings]


# Parts of a step that are alike by chance.


def accumulated(size: int, again: bool) -> Report:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 0.01)

    def run(w: object) -> None:
        for _ in range(12):
            optimiser.zero_grad()
            parts = [some(size) for _ in range(4)]
            for x, y in [*parts[:2], *parts[:2]] if again else parts:
                functional.cross_entropy(model(x), y % 2).backward()
            optimiser.step()

    return watched(Loop(model, [optimiser], run), select=["accumulation-not-scaled"])


def test_parts_of_one_sample_are_alike_by_chance_and_still_parts() -> None:
    assert names(accumulated(3, again=False)) == ["accumulation-not-scaled"]


def test_parts_that_come_twice_in_every_step_are_a_second_look() -> None:
    assert not names(accumulated(3, again=True))


# The model is called once more between the backward and the step.


@pytest.mark.parametrize("ask", ["gradient", "nothing"])
def test_what_clears_the_gradients_after_the_backward_is_named_whatever_it_called_the_model_for(ask: str) -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 0.05)

    def run(w: object) -> None:
        for _ in range(24):
            x, y = some()
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            seen = x[:4].clone().requires_grad_()
            score = model(seen).amax(1).sum()
            if ask == "gradient":
                torch.autograd.grad(score, seen)
            model.zero_grad()
            optimiser.step()

    (finding,) = watched(Loop(model, [optimiser], run), select=["gradients-erased", "missing-step"]).findings
    assert finding.name == "gradients-erased"
    assert finding.location.text == "model.zero_grad()"


# A rate that goes by the clock.


@pytest.mark.parametrize(("told", "found"), [(False, ["learning-rate-decayed-away"]), (True, [])])
def test_a_rate_gone_before_the_first_plateau_ended_is_named_unless_it_waited_for_that(told: bool, found: list[str]) -> None:
    model = net()
    nn.init.zeros_(model[2].weight)
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    waits = lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.1, patience=8, threshold=0.1, eps=0.0)
    by_clock = lr_scheduler.StepLR(optimiser, 10, 0.1)

    def run(w: object) -> None:
        for _ in range(260):
            x, y = some()
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            waits.step(loss.item()) if told else by_clock.step()

    assert names(watched(Loop(model, [optimiser], run), select=["learning-rate-decayed-away"])) == found


# Totals that nobody sets back.


def test_a_total_of_losses_is_told_from_a_loss_that_rises() -> None:
    falling = Curve(np.arange(400), 2.0 * np.exp(-np.arange(400) / 60) + 0.05, np.full(400, 1e-3))
    logs = np.arange(40, 401, 40)
    spans = np.array([part.mean() for part in np.split(falling.losses, logs[:-1])])
    assert adds_up(logs, np.cumsum(1.2 * spans), falling)
    assert adds_up(logs, np.cumsum(25 * spans), falling)
    overfit = np.concatenate([spans[:4], 0.3 + 0.1 * np.arange(6)])
    assert not adds_up(logs, overfit, falling)
    assert not adds_up(logs, spans, falling)
    assert not adds_up(logs, 0.5 + 0.05 * np.arange(10), falling)


def validated(scale: float, reset: bool) -> Report:
    """Validation by argmax alone: no loss is heard there."""
    model = net()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)

    def run(w) -> None:
        right = 0.0
        for _ in range(8):
            for rows in torch.randperm(1400).split(64):
                optimiser.zero_grad()
                functional.cross_entropy(model(X[rows]), Y[rows]).backward()
                optimiser.step()
            with torch.no_grad():
                now = float((model(X[1400:]).argmax(1) == Y[1400:]).float().mean())
            right = now if reset else right + now
            w.log(val_accuracy=scale * right)

    return watched(Loop(model, [optimiser], run), select=["metric-misread"])


def test_shares_of_an_unheard_validation_that_add_up_are_found_and_percent_are_fine() -> None:
    assert names(validated(1.0, reset=False)) == ["metric-misread"]
    assert not names(validated(1.0, reset=True))
    assert not names(validated(100.0, reset=True))


# Losses of an agent.


@pytest.mark.parametrize(("discount", "found"), [(1.05, ["loss-diverges"]), (0.9, [])])
def test_values_that_feed_on_themselves_diverge_and_discounted_ones_may_rise(discount: float, found: list[str]) -> None:
    model = net(64, 24, 1)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)

    def step() -> None:
        x, y = some()
        with torch.no_grad():
            target = 0.1 * y[:, None] + discount * model(some()[0])
        optimiser.zero_grad()
        functional.mse_loss(model(x), target).backward()
        optimiser.step()

    with sleuth.watch(model, optimiser, directory=None, quiet=True, select=["loss-diverges"]) as w:
        for _ in range(1500):
            step()
    assert names(w.report()) == found

"""Curves of loops that a watch hears: whose losses can be compared, and whose cannot."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth import Report
from tests.kits.torch_kit import TorchKit
from tests.material import digits

KIT = TorchKit()
CURVES = ["loss-diverges", "loss-oscillates", "loss-spikes", "loss-not-decreasing", "loss-not-finite", "stopped-too-early"]
X, Y = (torch.as_tensor(a) for a in digits())


def watch(
    model: nn.Module,
    optimisers: list[torch.optim.Optimizer],
    step: Callable[[int], None],
    steps: int,
    names: list[str] | None = None,
) -> Report:
    with sleuth.watch(model, optimisers, directory=None, quiet=True, select=names or CURVES) as w:
        for number in range(steps):
            step(number)
    assert w.watching.trouble is None
    return w.report()


def some() -> torch.Tensor:
    return torch.randint(0, len(X), (32,))


def test_a_gan_is_not_judged_by_its_losses() -> None:
    model = nn.ModuleDict({"make": KIT.mlp(8, 32, 64), "judge": KIT.mlp(64, 32, 1)})
    maker, judge = (torch.optim.Adam(model[name].parameters(), 1e-3) for name in ("make", "judge"))
    bce, ones, zeros = functional.binary_cross_entropy_with_logits, torch.ones(32, 1), torch.zeros(32, 1)

    def step(_: int) -> None:
        made = model["make"](torch.randn(32, 8))
        judge.zero_grad()
        (bce(model["judge"](X[some()]), ones) + bce(model["judge"](made.detach()), zeros)).backward()
        judge.step()
        maker.zero_grad()
        bce(model["judge"](made), ones).backward()
        maker.step()

    report = watch(model, [judge, maker], step, 300)
    assert not report.findings
    assert "pull against each other" in report.not_examined["loss-diverges"]
    assert "pull against each other" in report.not_examined["stopped-too-early"]


def test_two_optimisers_of_one_loss_make_one_curve() -> None:
    """The second one steps without a backward of its own: that is no loss of NaN."""
    model = KIT.mlp(64, 32, 10)
    optimisers = [torch.optim.SGD(model[0].parameters(), 0.1), torch.optim.Adam(model[2].parameters(), 1e-3)]

    def step(_: int) -> None:
        rows = some()
        for optimiser in optimisers:
            optimiser.zero_grad()
        functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        for optimiser in optimisers:
            optimiser.step()

    report = watch(model, optimisers, step, 1000, CURVES[:-1])
    assert not report.findings
    assert {"loss-diverges", "loss-not-finite"} <= set(report.clear)


def test_an_agent_that_asks_its_model_before_each_step_is_not_judged() -> None:
    """Its targets are its own, growing answers, as in Q-learning: the loss rises while it learns."""
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def step(number: int) -> None:
        rows = some()
        with torch.no_grad():
            best = model(X[rows]).max(1).values
        wanted = (Y[rows] == 3).float() * (1 + number / 20) + 0.9 * best
        optimiser.zero_grad()
        functional.smooth_l1_loss(model(X[rows])[:, 0], wanted).backward()
        optimiser.step()

    report = watch(model, [optimiser], step, 400)
    assert not report.findings
    assert "reinforcement learning" in report.not_examined["loss-diverges"]


def test_steps_of_different_numbers_of_passes_are_not_compared() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def step(number: int) -> None:
        optimiser.zero_grad()
        rows = some()
        passes = [functional.cross_entropy(model(X[rows]), Y[rows]) for _ in range(1 + number // 20)]
        torch.stack(passes).sum().backward()
        optimiser.step()

    report = watch(model, [optimiser], step, 250)
    assert not report.findings
    assert "different numbers of passes" in report.not_examined["loss-diverges"]


def test_a_policy_loss_about_zero_is_not_judged() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def step(_: int) -> None:
        rows = some()
        policy = torch.distributions.Categorical(logits=model(X[rows]))
        actions = policy.sample()
        reward = (actions == Y[rows]).float()
        optimiser.zero_grad()
        (-(reward - reward.mean()) * policy.log_prob(actions)).mean().backward()
        optimiser.step()

    report = watch(model, [optimiser], step, 400)
    assert not report.findings
    assert "about zero" in report.not_examined["loss-diverges"]


def flat(model: nn.Module, steps: int, lr: float = 0.0) -> Report:
    optimiser = torch.optim.SGD(model.parameters(), lr)

    def step(_: int) -> None:
        rows = some()
        optimiser.zero_grad()
        functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        optimiser.step()

    return watch(model, [optimiser], step, steps, ["loss-not-decreasing"])


def test_a_loss_that_stays_at_guessing_is_named() -> None:
    (finding,) = flat(KIT.mlp(64, 32, 10), 300).findings
    assert "where guessing costs 2.3" in finding.summary


@pytest.mark.parametrize("steps", [40, 100])
def test_a_short_plateau_is_not_examined(steps: int) -> None:
    assert "plateau" in flat(KIT.mlp(64, 32, 10), steps).not_examined["loss-not-decreasing"]


def test_a_model_that_goes_on_at_its_low_level_is_healthy() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(200):
        optimiser.zero_grad()
        functional.cross_entropy(model(X), Y).backward()
        optimiser.step()
    assert "loss-not-decreasing" in flat(model, 400, lr=1e-3).clear


def test_a_plateau_that_ends_in_a_fall_is_healthy() -> None:
    """The rate is too small to be seen at first."""
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), 1e-5)

    def step(number: int) -> None:
        optimiser.param_groups[0]["lr"] = 1e-5 if number < 300 else 0.1
        rows = some()
        optimiser.zero_grad()
        functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        optimiser.step()

    report = watch(model, [optimiser], step, 600, ["loss-not-decreasing", "loss-diverges"])
    assert not report.findings
    assert "loss-not-decreasing" in report.clear


def test_steps_that_a_scaler_skips_lose_no_loss() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)

    def step(_: int) -> None:
        rows = some()
        optimiser.zero_grad()
        scaler.scale(functional.cross_entropy(model(X[rows]), Y[rows])).backward()
        scaler.step(optimiser)
        scaler.update()

    report = watch(model, [optimiser], step, 300, [*CURVES[:-1], "gradient-not-finite", "exploding-gradients"])
    assert not report.findings
    assert "loss-not-finite" in report.clear


def test_the_first_steps_of_a_head_near_zero_do_not_tell_of_vanishing_gradients() -> None:
    model = KIT.mlp(64, 32, 32, 32, 10)
    nn.init.normal_(model[-1].weight, std=1e-7)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def step(_: int) -> None:
        rows = some()
        optimiser.zero_grad()
        functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        optimiser.step()

    early = watch(model, [optimiser], step, 3, ["vanishing-gradients"])
    assert early.not_examined["vanishing-gradients"] == "only 3 steps were seen"
    assert "vanishing-gradients" in watch(model, [optimiser], step, 200, ["vanishing-gradients"]).clear

"""Learning rates are judged by what another rate does, and only far from any sensible one."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Report, Subject, examine
from sleuth.probes.lab.rates import smooth, suggest
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digit_images, digits

# Minutes of training; the cases of these checks are tried every time.
pytestmark = pytest.mark.long

KIT = TorchKit()
NAMES = ["learning-rate-too-high", "learning-rate-too-low"]


def judge(model: nn.Module, optimiser: Any, loader: Any = None, loss: Any = None, **options: Any) -> Report:
    subject = Subject(model, loader or KIT.loader(*digits()), loss or nn.CrossEntropyLoss(), optimiser)
    return examine(subject, select=NAMES, progress=False, **options)


@pytest.mark.parametrize("lr", [1e-4, 3e-4, 1e-3, 1e-2, 3e-2])
def test_usual_rates_of_adam_are_not_accused(lr: float) -> None:
    model = KIT.mlp(64, 64, 32, 10)
    report = judge(model, torch.optim.Adam(model.parameters(), lr=lr))
    assert not report.findings
    assert set(NAMES) <= set(report.clear)


@pytest.mark.parametrize("lr", [1e-2, 0.1, 0.5])
def test_usual_rates_of_sgd_are_not_accused(lr: float) -> None:
    model = KIT.mlp(64, 64, 32, 10)
    report = judge(model, torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9 if lr < 0.5 else 0.0))
    assert not report.findings


def test_fine_tuning_is_slow_on_purpose() -> None:
    model = KIT.mlp(64, 64, 32, 10)
    x, y = (torch.as_tensor(a) for a in digits())
    old = y < 5
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[old]), y[old]).backward()
        optimiser.step()
    report = judge(model, torch.optim.AdamW(model.parameters(), lr=2e-5))
    assert not report.findings


def test_a_large_rate_with_momentum_may_rise_before_it_falls() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    optimiser = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, nesterov=True)
    report = judge(model, optimiser, KIT.loader(*digit_images()))
    assert not report.findings


@pytest.mark.parametrize(("optimiser", "lr"), [(torch.optim.Adam, 3.0), (torch.optim.SGD, 20.0), (torch.optim.AdamW, 1.0)])
def test_rates_that_ruin_a_training_are_named_with_a_better_one(optimiser: Any, lr: float) -> None:
    model = KIT.mlp(64, 64, 32, 10)
    report = judge(model, optimiser(model.parameters(), lr=lr))
    assert [f.name for f in report.findings] == ["learning-rate-too-high"]
    assert 1e-4 < report.findings[0].numbers["suggested"] < lr / 2


def test_a_rate_at_which_a_regression_blows_up_is_named() -> None:
    model = KIT.mlp(10, 32, 1)
    report = judge(model, torch.optim.SGD(model.parameters(), lr=5.0), KIT.loader(*diabetes()), nn.MSELoss())
    assert [f.name for f in report.findings] == ["learning-rate-too-high"]


@pytest.mark.parametrize(("optimiser", "lr"), [(torch.optim.Adam, 1e-7), (torch.optim.SGD, 1e-5)])
def test_rates_at_which_nothing_happens_are_named_with_a_better_one(optimiser: Any, lr: float) -> None:
    model = KIT.mlp(64, 64, 32, 10)
    report = judge(model, optimiser(model.parameters(), lr=lr))
    assert [f.name for f in report.findings] == ["learning-rate-too-low"]
    assert 1e-3 < report.findings[0].numbers["suggested"] < 3


def test_without_an_optimiser_rates_are_not_examined() -> None:
    report = judge(KIT.mlp(64, 16, 10), None)
    assert set(report.not_examined.values()) == {"no optimiser was given"}


def test_noise_suggests_no_rate() -> None:
    noise = np.random.default_rng(0).normal(2.3, 0.2, size=80)
    suggested, reason = suggest(np.geomspace(1e-6, 100, 80).tolist(), noise.tolist())
    assert suggested is None
    assert "noise" in reason


def test_the_suggestion_lies_a_decade_below_the_lowest_loss() -> None:
    rates = np.geomspace(1e-6, 100, 80)
    losses = 2.3 - 2 * np.exp(-((np.log10(rates) + 1) ** 2)) + (rates > 1) * 3
    suggested, _ = suggest(rates.tolist(), losses.tolist())
    assert suggested is not None
    assert 3e-3 < suggested < 6e-2


def test_smoothing_leaves_a_constant_alone() -> None:
    assert smooth([2.0] * 10) == pytest.approx([2.0] * 10)

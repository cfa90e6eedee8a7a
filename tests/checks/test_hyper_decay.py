"""Weight decay is judged by the same training without it."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject
from sleuth.core.trial import DecayTrial
from tests.checks.trying import Outcome, attempt
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

# Minutes of training; the cases of these checks are tried every time.
pytestmark = pytest.mark.long

KIT = TorchKit()
NAME = "weight-decay-too-strong"
SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW


def judge(optimiser: Any, lr: float, weight_decay: float) -> Outcome:
    model = KIT.mlp(64, 32, 10)
    steps = optimiser(model.parameters(), lr=lr, weight_decay=weight_decay)
    return attempt(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), steps), {NAME}, {"overfit", "decay_trial"})


@pytest.mark.parametrize(
    ("optimiser", "lr", "decay"),
    [
        (SGD, 0.1, 0.0),
        (SGD, 0.1, 5e-4),
        (SGD, 0.1, 0.01),
        (ADAM, 1e-3, 1e-4),
        (ADAM, 1e-3, 0.01),
        (ADAMW, 1e-3, 0.1),
        (ADAMW, 1e-3, 1.0),
    ],
)
def test_usual_decays_are_not_accused(optimiser: Any, lr: float, decay: float) -> None:
    assert NAME in judge(optimiser, lr, decay).clear


@pytest.mark.parametrize(
    ("optimiser", "lr", "decay"), [(SGD, 0.1, 0.3), (SGD, 0.01, 1.0), (ADAM, 1e-3, 0.3), (ADAMW, 1e-3, 30.0), (SGD, 0.1, 30.0)]
)
def test_decays_that_undo_the_gradient_are_named_with_what_happens_without(optimiser: Any, lr: float, decay: float) -> None:
    finding = judge(optimiser, lr, decay).findings[NAME]
    assert finding.numbers["weight_decay"] == decay
    assert finding.numbers["end_without"] < finding.numbers["start"]
    assert [s.name for s in finding.series] == ["loss with weight decay", "loss without"]
    assert len(finding.series[1].y) == 300


@pytest.mark.parametrize(("optimiser", "lr", "decay"), [(SGD, 0.1, 5e-4), (ADAMW, 1e-3, 0.1), (ADAM, 1e-3, 1e-4)])
def test_usual_decays_cost_no_training(optimiser: Any, lr: float, decay: float) -> None:
    """Adam decays by full steps where there is no gradient, as at the pixels in the corners: that does not count."""
    trial = judge(optimiser, lr, decay).history.single(DecayTrial)
    assert trial.steps == 0
    assert 0 < trial.pull < 0.3


def test_decay_of_one_group_alone_is_taken_away_from_that_group() -> None:
    model = KIT.mlp(64, 32, 10)
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.5}]
    groups.append({"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0})
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), SGD(groups, lr=0.1))
    outcome = attempt(subject, {NAME}, {"overfit", "decay_trial"})
    assert outcome.findings[NAME].numbers["weight_decay"] == 0.5
    assert [group["weight_decay"] for group in subject.optimizer.param_groups] == [0.5, 0.0]


def test_decay_that_validation_asks_for_is_not_accused() -> None:
    """A wide model and forty patients: with decay training gets worse and validation better."""
    x, y = diabetes()
    order = np.random.default_rng(0).permutation(len(x))
    model = KIT.mlp(10, 256, 256, 1)
    steps = ADAMW(model.parameters(), lr=1e-3, weight_decay=5.0)
    train, validation = KIT.loader(x[order[:40]], y[order[:40]]), KIT.loader(x[order[40:]], y[order[40:]], shuffle=False)
    outcome = attempt(Subject(model, train, nn.MSELoss(), steps, validation), {NAME}, {"overfit", "decay_trial"})
    trial = outcome.history.single(DecayTrial)
    assert trial.steps > 0
    assert trial.end > trial.free_end
    assert trial.validation_end < trial.validation_free_end
    assert NAME in outcome.clear


def test_an_optimiser_without_decay_is_not_examined() -> None:
    model = KIT.mlp(64, 16, 10)
    steps = torch.optim.LBFGS(model.parameters(), lr=0.1)
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), steps)
    assert attempt(subject, {NAME}, {"decay_trial"}).not_examined[NAME] == "the optimiser names no weight decay"

"""A batch that cannot be learned by heart because of weight decay is the decay's doing."""

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from sleuth import Report

NAMES = ["cannot-overfit-one-batch", "weight-decay-too-strong"]
SECONDS = 300.0


class Blind(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0 * x


def examined(decay: float, *between: nn.Module) -> Report:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 6)).astype(np.float32)
    y = (np.sin(x[:, 0]) + x[:, 1] * x[:, 2]).astype(np.float32)[:, None]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 48), *between, nn.Tanh(), nn.Linear(48, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=decay)
    return sleuth.examine(model, (x, y), loss=nn.MSELoss(), optimizer=optimiser, select=NAMES, budget_seconds=SECONDS)


@pytest.mark.parametrize("decay", [0.06])
def test_decay_that_keeps_one_batch_from_being_learned_is_named_before_its_symptom(decay: float) -> None:
    (culprit,) = examined(decay).culprits
    assert culprit.finding.name == "weight-decay-too-strong"
    assert [symptom.name for symptom in culprit.symptoms] == ["cannot-overfit-one-batch"]


def test_a_usual_decay_is_left_alone() -> None:
    report = examined(1e-4)
    assert not report.culprits
    assert set(report.clear) == set(NAMES)


def test_a_batch_that_is_not_learned_without_decay_either_is_not_held_against_it() -> None:
    (culprit,) = examined(0.01, Blind()).culprits
    assert culprit.finding.name == "cannot-overfit-one-batch"

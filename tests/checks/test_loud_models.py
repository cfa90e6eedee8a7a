"""Models that answer far too loudly, or with NaN from the first step: the model is named, not the targets or the loss."""

import torch
from torch import Tensor, nn

from sleuth import Subject, examine
from sleuth.testing import Loop
from tests.checks import data_stage
from tests.checks.looking import look, training
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits
from tests.watched import watched

KIT = TorchKit()


class Times(nn.Module):
    def __init__(self, factor: float, shift: float = 0.0) -> None:
        super().__init__()
        self.factor, self.shift = factor, shift

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x + self.shift


def test_answers_that_dwarf_the_targets_do_not_make_the_loss_ignore_them() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1), Times(1e7))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    subject = Subject(model, KIT.loader(*diabetes()), nn.MSELoss(), optimiser)
    report = examine(subject, select=["loss-ignores-target"], progress=False)
    assert "loss-ignores-target" in report.clear


def test_a_target_near_zero_is_on_no_other_scale_however_loud_the_model_is() -> None:
    x, y = diabetes()
    model = nn.Sequential(nn.Linear(10, 1), Times(1.0, 5000.0))
    report = data_stage.judge(model, data_stage.loader(x, y), nn.MSELoss(), checks=["target-not-scaled"])
    assert "target-not-scaled" in report.clear


class Doubling(nn.Module):
    def __init__(self, width: int, keeps: float) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        self.keeps = keeps

    def forward(self, x: Tensor) -> Tensor:
        return self.keeps * x + self.inner(x)


def tower(keeps: float) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), *(Doubling(32, keeps) for _ in range(16)), nn.Linear(32, 10))


def test_a_stream_that_doubles_in_each_block_is_seen_beside_branches_of_their_own_size() -> None:
    assert look(training(tower(2.0)), "signal-grows-or-fades").names == ["signal-grows-or-fades"]
    assert look(training(tower(1.0)), "signal-grows-or-fades").names == []


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score, self.value, self.head = nn.Linear(8, 1), nn.Linear(8, 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, 8, 8)
        blank = rows[:, 0, 3:4] < 0.3  # a whole picture is left out where one pixel is dark
        weights = self.score(rows).squeeze(-1).masked_fill(blank, float("-inf")).softmax(1)
        return self.head((weights.unsqueeze(1) @ self.value(rows)).squeeze(1))


def test_a_loss_that_is_lost_at_the_first_step_is_told_with_its_birthplace() -> None:
    torch.manual_seed(0)
    model = Pooled()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = (torch.as_tensor(part) for part in digits())

    def run(w: object) -> None:
        for i in range(0, 256, 32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[i : i + 32]), y[i : i + 32]).backward()
            optimiser.step()

    report = watched(Loop(model, [optimiser], run, {"every": 1}), select=["loss-not-finite", "output-not-finite"])
    (culprit,) = report.culprits
    assert culprit.finding.name == "loss-not-finite"
    assert culprit.finding.location is not None
    assert "softmax" in culprit.finding.location.text
    assert "loss-not-finite" in report.not_examined["output-not-finite"]

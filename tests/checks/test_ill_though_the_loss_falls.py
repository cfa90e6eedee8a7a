"""A loss that falls hides what is lost on the way: told where it is certain, and only there."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth import Report
from sleuth.checks.training.units_dying import Activity
from sleuth.core.stage import Severity
from sleuth.testing import Loop
from tests.material import digits
from tests.watched import watched

X, Y = (torch.as_tensor(part) for part in digits())
Step = Callable[[int, torch.Tensor, torch.Tensor], torch.Tensor]


def trained(model: nn.Module, check: str, loss: Step, steps: int = 300, lr: float = 1e-3, log=None) -> Report:
    optimiser = torch.optim.Adam(model.parameters(), lr)

    def run(w: object) -> None:
        order = torch.Generator().manual_seed(0)
        for step in range(steps):
            rows = torch.randint(len(X), (32,), generator=order)
            optimiser.zero_grad()
            loss(step, X[rows], Y[rows]).backward()
            optimiser.step()
            if log and step % 25 == 24:
                w.log(val_accuracy=log())

    return watched(Loop(model, [optimiser], run, {"every": 5}), select=[check])


def activity(rates: np.ndarray, looks: int = 12) -> Activity:
    """All fire at the first looks; then each with its own rate."""
    fired = np.random.default_rng(0).random((looks, len(rates))) < rates
    fired[: looks // 3] = True
    return Activity("1", np.arange(looks) * 10, fired, np.full(looks, 32))


def test_units_that_fire_seldom_do_not_count_as_dead() -> None:
    seldom, dead = activity(np.full(200, 0.15)), activity(np.repeat([0.0, 1.0], [100, 100]))
    assert seldom.died.mean() > 0.4
    assert seldom.died_share < 0.2
    assert dead.died_share == 0.5
    assert not dead.most_died
    assert activity(np.repeat([0.0, 1.0], [120, 80])).most_died


@pytest.mark.parametrize(("lr", "sick"), [(3e-2, True), (3e-3, False)])
def test_a_layer_of_which_most_units_die_is_told_and_one_that_can_spare_some_is_not(lr: float, sick: bool) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    report = trained(model, "units-dying", lambda _, x, y: functional.mse_loss(model(x), x), lr=lr)
    assert [(f.where, f.severity) for f in report.findings] == ([("1", Severity.HINT)] if sick else [])


class Temperature(nn.Module):
    def __init__(self, bound: float) -> None:
        super().__init__()
        self.layer, self.bound = nn.Linear(64, 10), bound
        self.scale, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The offset of all scores cancels out in the softmax."""
        scores = self.layer(x) * self.scale.clamp(max=self.bound) + self.offset
        return functional.log_softmax(scores, dim=1)


@pytest.mark.parametrize(("bound", "sick"), [(0.5, True), (1.2, False)])
def test_a_scale_beyond_its_bounds_is_told_unless_it_learned_before(bound: float, sick: bool) -> None:
    model = Temperature(bound)
    report = trained(model, "zero-gradients", lambda _, x, y: functional.nll_loss(model(x), y), lr=1e-2)
    assert [f.where for f in report.findings] == (["scale"] if sick else [])


def test_a_shift_that_cancels_out_in_differences_is_not_accused() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))

    def pairs(_: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        one, other = model(x[:16]), model(x[16:])
        return functional.softplus((other - one)[:, 0] * (y[:16] - y[16:]).sign()).mean()

    assert "zero-gradients" in trained(model, "zero-gradients", pairs).clear


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.one, self.other = nn.Linear(64, 32), nn.Linear(32, 10), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.body(x))
        return self.one(hidden), self.other(hidden)


@pytest.mark.parametrize(("begins", "steps", "sick"), [(999, 200, True), (180, 200, False), (999, 60, False)])
def test_a_head_whose_loss_never_counts_is_told_when_a_whole_training_is_over(begins: int, steps: int, sick: bool) -> None:
    model = TwoHeads()

    def loss(step: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        one, other = model(x)
        return functional.cross_entropy(one, y) + float(step >= begins) * functional.cross_entropy(other, y)

    report = trained(model, "zero-gradients", loss, steps)
    assert [(f.where, f.severity) for f in report.findings] == ([("other.weight", Severity.HINT)] if sick else [])


@pytest.mark.parametrize(("scale", "sick"), [(1 / 4096, True), (1.0, False)])
def test_gradients_that_are_faint_from_the_start_are_told_and_those_of_a_finished_training_are_not(
    scale: float, sick: bool
) -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))

    def loss(_: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return functional.cross_entropy(model(x), y % 2) * scale

    report = trained(model, "precision-lost", loss, steps=600, lr=1e-2)
    assert [f.severity for f in report.findings] == ([Severity.HINT] if sick else [])


@pytest.mark.parametrize(("logged", "told"), [(True, True), (False, False)])
def test_an_accuracy_that_is_the_share_of_a_class_is_told_to_who_goes_by_it(logged: bool, told: bool) -> None:
    model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))
    blank = torch.zeros(1, 64)

    def loss(_: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(blank.expand(len(x), 64)), (y == 4).long())

    def accuracy() -> float:
        with torch.no_grad():
            return (model(blank.expand(len(X), 64)).argmax(1) == (Y == 4)).float().mean().item()

    report = trained(model, "predicts-one-class", loss, lr=1e-2, log=accuracy if logged else None)
    assert [f.where for f in report.findings] == (["class 0"] if told else [])


def test_a_rare_class_that_is_learned_is_not_accused() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))

    def accuracy() -> float:
        with torch.no_grad():
            return (model(X).argmax(1) == (Y == 4)).float().mean().item()

    report = trained(
        model, "predicts-one-class", lambda _, x, y: functional.cross_entropy(model(x), (y == 4).long()), log=accuracy
    )
    assert "predicts-one-class" in report.clear

"""What tensors do over the steps of a watched training: told apart from what only looks like it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth import Report
from sleuth.adapters.torch.watching.look_depth import is_deep
from sleuth.adapters.torch.watching.unit_notes import MOST_UNITS, MOST_VALUES, UnitNotes
from sleuth.core.observation import Units
from sleuth.testing import Loop
from tests.material import cancer, digits
from tests.watched import watched

X, Y = (torch.as_tensor(part) for part in digits())
Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def classify(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x), y)


def train(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    select: Sequence[str],
    loss: Loss = classify,
    steps: int = 160,
    between: Callable[[int], None] = lambda step: None,
    every: int = 5,
    set_to_none: bool = True,
) -> Report:
    def run(w: object) -> None:
        order = torch.Generator().manual_seed(0)
        for step in range(steps):
            between(step)
            rows = torch.randint(len(X), (32,), generator=order)
            optimiser.zero_grad(set_to_none=set_to_none)
            loss(model, X[rows], Y[rows]).backward()
            optimiser.step()

    return watched(Loop(model, [optimiser], run, {"every": every}), select=list(select))


def mlp(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), activation())]
    return nn.Sequential(*layers[:-1])


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr)


# Gradients of exactly zero.


class Adapted(nn.Module):
    """A frozen layer with an adapter of low rank beside it that starts at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(64, 32).requires_grad_(False)
        self.down, self.up, self.head = nn.Linear(64, 4, bias=False), nn.Linear(4, 32, bias=False), nn.Linear(32, 10)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.frozen(x) + self.up(self.down(x))))


def test_an_adapter_that_starts_at_zero_is_no_cut() -> None:
    model = Adapted()
    assert "zero-gradients" in train(model, adam(model), ["zero-gradients"]).clear


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.one, self.other = nn.Linear(64, 32), nn.Linear(32, 10), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.body(x))
        return self.one(hidden), self.other(hidden)


def test_a_head_whose_loss_counts_nothing_for_now_is_not_accused() -> None:
    model = TwoHeads()

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        one, other = model(x)
        return functional.cross_entropy(one, y) + 0.0 * functional.cross_entropy(other, y)

    report = train(model, adam(model), ["zero-gradients"], loss, steps=80)
    assert not report.findings
    assert "may be idle" in report.not_examined["zero-gradients"]


def test_a_part_that_is_frozen_on_the_way_is_not_accused() -> None:
    model = mlp(64, 32, 10)

    def freeze(step: int) -> None:
        model[0].requires_grad_(step < 20)

    report = train(model, adam(model), ["zero-gradients", "weights-do-not-change"], between=freeze, set_to_none=False)
    assert not report.findings


def test_margins_that_are_all_kept_leave_nothing_to_learn() -> None:
    x, y = (torch.as_tensor(part) for part in cancer())
    model = nn.Linear(30, 1)
    with torch.no_grad():  # it separates the classes from the start, with room to spare
        side = (2 * y - 1).float()
        model.weight.copy_(torch.linalg.lstsq(x, side[:, None]).solution.T * 1e6)
        model.bias.zero_()
    kept = ((model(x)[:, 0] * side) > 1).nonzero()[:, 0][:64]

    def loss(model: nn.Module, *_: torch.Tensor) -> torch.Tensor:
        return functional.relu(1 - model(x[kept])[:, 0] * side[kept]).mean()

    report = train(model, adam(model), ["zero-gradients"], loss)
    assert "nothing left to learn" in report.not_examined["zero-gradients"]


def test_an_output_that_is_clamped_at_its_bound_stops_every_gradient() -> None:
    model = mlp(64, 32, 10)

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(x).clamp(5, 6), y)

    report = train(model, adam(model), ["zero-gradients"], loss)
    assert "all 2 weight matrices" in report.culprits[0].finding.summary


def test_dead_units_explain_zero_gradients() -> None:
    model = mlp(64, 32, 32, 10)
    with torch.no_grad():
        model[2].bias.fill_(-50.0)
    report = train(model, adam(model), ["zero-gradients", "dead-units"])
    assert [c.finding.name for c in report.culprits] == ["dead-units"]
    assert [s.name for s in report.culprits[0].symptoms] == ["zero-gradients"]


# Sizes of updates.


def pretrained() -> nn.Sequential:
    model = mlp(64, 32, 10)
    optimiser = adam(model, 1e-2)
    for _ in range(150):
        optimiser.zero_grad()
        classify(model, X, Y).backward()
        optimiser.step()
    return model


def test_a_tiny_rate_on_trained_weights_is_meant() -> None:
    model = pretrained()
    report = train(model, torch.optim.SGD(model.parameters(), 1e-5), ["update-too-small"])
    assert not report.findings
    assert "trained before" in report.not_examined["update-too-small"]


def test_a_long_warm_up_is_not_too_slow_yet() -> None:
    model = mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), 1e-5)

    def warm(step: int) -> None:
        optimiser.param_groups[0]["lr"] = 1e-5 * (step + 1) / 160

    report = train(model, optimiser, ["update-too-small"], between=warm)
    assert not report.findings


def test_large_updates_that_work_are_not_accused() -> None:
    model = mlp(64, 64, 10)
    report = train(model, adam(model, 5e-2), ["update-too-large"], every=1, steps=60)
    assert "update-too-large" in report.clear


# Weights that stay, and weights that grow.


def test_a_group_without_a_rate_is_named() -> None:
    model = mlp(64, 32, 10)
    groups = [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}]
    (culprit,) = train(model, torch.optim.Adam(groups, 1e-3), ["weights-do-not-change"]).culprits
    assert culprit.finding.where == "0.weight"
    assert "1 of 2" in culprit.finding.summary


def test_a_rate_that_a_schedule_brings_to_zero_is_meant() -> None:
    model = mlp(64, 32, 10)
    optimiser = adam(model, 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 80)

    def follow(step: int) -> None:
        if 0 < step <= 80:
            schedule.step()
        if step > 80:
            optimiser.param_groups[0]["lr"] = 0.0

    names = ["weights-do-not-change", "update-too-small"]
    assert set(names) <= set(train(model, optimiser, names, between=follow).clear)


class Words(nn.Module):
    """Few of many rows are asked for at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(100_000, 16), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.words((x[:, 20:24] * 16).long().sum(1) * 17))


def test_rows_that_no_sample_asks_for_may_stay() -> None:
    model = Words()
    names = ["weights-do-not-change", "zero-gradients", "update-too-small"]
    assert not train(model, torch.optim.SGD(model.parameters(), 0.5), names).findings


def test_weights_before_a_normalisation_may_grow() -> None:
    model = nn.Sequential(nn.Linear(64, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
    report = train(model, torch.optim.SGD(model.parameters(), 5.0), ["weights-grow"], steps=300)
    assert not report.findings


# Units.


def test_a_code_that_becomes_sparse_is_not_dying() -> None:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        code = model[1](model[0](x))
        return functional.mse_loss(model[2](code), x) + 1e-2 * code.mean()

    report = train(model, adam(model, 1e-2), ["units-dying", "dead-units"], loss, steps=400, every=4)
    assert not report.findings
    assert "units-dying" in report.clear


def test_sigmoids_that_have_learned_to_say_yes_or_no_are_not_saturated() -> None:
    model = nn.Sequential(mlp(64, 64, 10), nn.Sigmoid())

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy(model(x), functional.one_hot(y, 10).float())

    assert "saturated-units" in train(model, adam(model, 1e-2), ["saturated-units"], loss, steps=300).clear


@pytest.mark.parametrize("shape", [(7, 5), (200, 3000), (8, 40, 6), (4, 33, 50, 60)])
def test_units_are_counted_as_an_examination_counts_them(shape: tuple[int, ...]) -> None:
    """Of large outputs an even sample."""
    model = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU())
    notes, values = UnitNotes(model), torch.relu(torch.randn(shape))
    axis = 1 if len(shape) >= 4 else len(shape) - 1
    notes.note(model[1], "1", values)
    made = notes.take(0)
    assert made is not None
    (units,) = made()
    assert isinstance(units, Units)
    assert len(units.nonzero) <= MOST_UNITS
    assert units.nonzero.sum() <= MOST_VALUES
    every = -(-shape[axis] // MOST_UNITS)
    whole = np.moveaxis(values.numpy(), axis, -1).reshape(-1, shape[axis])[:, ::every]
    if values.numel() <= MOST_VALUES:
        np.testing.assert_array_equal(units.nonzero, np.count_nonzero(whole, axis=0))
        np.testing.assert_array_equal(units.max, whole.max(axis=0))
        assert units.samples == shape[0]
    else:
        assert (units.max <= whole.max(axis=0)).all()


def test_deep_looks_become_rarer_the_longer_a_run_is() -> None:
    counts = [sum(is_deep(look, asked=True) for look in range(total)) for total in (100, 1_000, 10_000, 100_000)]
    assert counts == sorted(counts)
    assert counts[0] >= 12
    assert counts[3] < 350


# Precision.


def half_loss(dtype: torch.dtype) -> Loss:
    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(x.to(dtype)).float(), y)

    return loss


def test_steps_too_small_for_bfloat16_are_lost() -> None:
    model = mlp(64, 32, 10).bfloat16()
    names = ["precision-lost", "update-too-small", "weights-do-not-change"]
    report = train(model, torch.optim.SGD(model.parameters(), 5e-4), names, half_loss(torch.bfloat16))
    assert report.culprits[0].finding.name == "precision-lost", report.to_text()


def test_bfloat16_that_learns_is_not_accused() -> None:
    model = mlp(64, 32, 10).bfloat16()
    report = train(model, torch.optim.SGD(model.parameters(), 0.1), ["precision-lost"], half_loss(torch.bfloat16))
    assert "precision-lost" in report.clear


class Loud(nn.Module):
    """A layer whose sums leave the range of float16, and a normalisation that would bring them back."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm, self.head = nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 10)
        nn.init.normal_(self.enter.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.enter(x * 3e4)))


@pytest.mark.parametrize(("dtype", "sick"), [(torch.float16, True), (torch.bfloat16, False)])
def test_what_float16_cannot_hold_is_named_where_it_overflows(dtype: torch.dtype, sick: bool) -> None:
    model = Loud()

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=dtype):
            return functional.cross_entropy(model(x).float(), y)

    report = train(model, adam(model), ["precision-lost", "output-not-finite"], loss, steps=60)
    assert [(c.finding.name, c.finding.where) for c in report.culprits] == ([("precision-lost", "enter")] if sick else [])


@pytest.mark.parametrize("scaled", [True, False])
def test_gradients_that_vanish_in_float16_are_named_unless_the_loss_is_scaled(scaled: bool) -> None:
    """A term of a larger sum that weighs next to nothing."""
    model = mlp(64, 64, 10, activation=nn.Tanh)
    optimiser = torch.optim.SGD(model.parameters(), 3e4)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, enabled=scaled)

    def run(w: object) -> None:
        for step in range(160):
            rows = slice(32 * (step % 50), 32 * (step % 50) + 32)
            optimiser.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = functional.cross_entropy(model(X[rows]).float(), Y[rows])
            scaler.scale(4e-6 * loss).backward()
            scaler.step(optimiser)
            scaler.update()

    report = watched(Loop(model, [optimiser], run, {"every": 5}), select=["precision-lost"])
    assert bool(report.findings) == (not scaled), report.to_text()

"""Taking a step apart accuses nobody who is innocent, ends in time, and works in every kind of loop."""

import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from sleuth.adapters.torch.watching import rerun_nonfinite
from sleuth.core.observation import NotFinite, Origin
from tests.watch.breaking import CASES, SICK
from tests.watch.origin_loops import QUIET, plain_loop, seen, watch_loop


@pytest.fixture(autouse=True)
def nothing_was_compiled():
    """Where something was, the loss expression is not listened to."""
    torch._dynamo.reset()


@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_weights_that_the_rate_blows_up_are_the_rates_doing(rate: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    model, optimiser, loop = plain_loop(lambda x, y: x.sub_(0.5).mul_(4), model, rate=rate)
    report, w = watch_loop(model, optimiser, loop)
    assert seen(w, NotFinite)
    culprit = report.culprits[0]
    assert culprit.finding.name == "learning-rate-too-high"
    assert "loss-not-finite" in [f.name for f in culprit.symptoms] or "gradient-not-finite" in [f.name for f in culprit.symptoms]
    assert "Lower the learning rate" in culprit.finding.fix


def test_a_single_sample_that_throws_the_weights_out_is_not_the_rates_doing() -> None:
    def spoil(x: torch.Tensor, y: torch.Tensor) -> None:
        y[20] = 1e30

    model, optimiser, loop = plain_loop(spoil, rate=1e-2)
    report, _ = watch_loop(model, optimiser, loop)
    assert "learning-rate-too-high" not in [f.name for f in report.findings]


def test_a_weight_that_the_optimiser_spoils_is_named() -> None:
    model = nn.Linear(4, 1)

    class Faulty(torch.optim.SGD):
        taken = 0

        @torch.no_grad()
        def step(self, closure=None):
            super().step()
            self.taken += 1
            if self.taken == 5:
                model.weight[0, 2] = torch.inf

    optimiser = Faulty(model.parameters(), 1e-3)
    model, optimiser, loop = plain_loop(lambda x, y: None, model, optimiser=optimiser)
    report, w = watch_loop(model, optimiser, loop)
    assert [(n.what, n.where) for n in seen(w, NotFinite)][:2] == [("loss", None), ("parameter", "weight")]
    assert "the weight weight itself holds" in report.culprits[0].finding.summary


class Attending(nn.Module):
    """Each place looks at those before it: the mask is -inf on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.enter, self.leave = nn.Linear(1, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.layer(self.enter(x.unsqueeze(2)), src_mask=mask)
        scores = (h @ h.transpose(1, 2)).masked_fill(torch.isinf(mask), -torch.inf)
        return self.leave(torch.softmax(scores, -1) @ h).mean(1)


def test_deliberate_masks_are_silent_and_stay_innocent_when_something_else_breaks() -> None:
    _, w = watch_loop(*plain_loop(lambda x, y: None, Attending()))
    assert not seen(w, NotFinite)
    broken = plain_loop(lambda x, y: y.__setitem__(SICK, -1.0), Attending(), loss=lambda z, y: (z - torch.log(y)).pow(2).mean())
    _, w = watch_loop(*broken)
    (origin,) = seen(w, Origin)
    assert (origin.operation, origin.outside) == ("log", True)


def test_the_first_steps_that_a_scaler_skips_are_not_accused() -> None:
    torch.manual_seed(0)
    x, y = torch.rand(64, 4), torch.rand(64, 1)
    model = nn.Linear(4, 1)
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    skipped = 0
    with sleuth.watch(model, optimiser, **QUIET) as w:
        for a, b in DataLoader(TensorDataset(x, y), 8):
            optimiser.zero_grad()
            before = scaler.get_scale()
            scaler.scale((model(a) - b).pow(2).mean() * 8).backward()
            scaler.step(optimiser)
            scaler.update()
            skipped += scaler.get_scale() < before
    assert skipped
    assert not seen(w, NotFinite)
    assert "gradient-not-finite" not in [f.name for f in w.report().findings]


class Trainer:
    """Frames that are gone when the optimiser steps, tensors in attributes, batches that no loader gave."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
        self.model, self.optimiser, self.x, self.y = model, optimiser, x, y
        self.weights = torch.linspace(1, 2, 3)

    def loss(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        gap = (z - y) * self.weights
        return torch.sqrt((gap**2).sum(1)).mean()

    def backward(self, x: torch.Tensor, y: torch.Tensor) -> float:
        x = (x - 0.5) * 2
        loss = self.loss(self.model(x).expand(-1, 3), y)
        loss.backward()
        return loss.item()

    def train(self) -> None:
        for at in range(0, 64, 8):
            rows = torch.arange(at, at + 8)
            self.optimiser.zero_grad()
            self.backward(self.x[rows], self.y[rows])
            self.optimiser.step()


def test_a_loop_in_methods_without_a_loader_is_taken_apart_too() -> None:
    torch.manual_seed(0)
    x = torch.rand(64, 4)
    model = nn.Linear(4, 1, bias=False)
    optimiser = torch.optim.SGD(model.parameters(), 0.0)
    with torch.no_grad():
        y = model((x - 0.5) * 2) + torch.rand(64, 1) + 0.1
        y[SICK] = model((x[SICK - 5 : SICK + 3] - 0.5) * 2)[5]
    trainer = Trainer(model, optimiser, x, y)
    with sleuth.watch(model, optimiser, **QUIET) as w:
        trainer.train()
    (origin,) = seen(w, Origin)
    assert (origin.operation, origin.direction, origin.outside) == ("sqrt", "backward", True)
    assert origin.location is not None
    assert origin.location.text == "return torch.sqrt((gap**2).sum(1)).mean()"
    assert origin.makers[:2] == ("sum", "pow")


def test_taking_apart_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Long(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(3_000):
                x = x + 1e-6
            return torch.log(self.last(x) * 0)

    monkeypatch.setattr(rerun_nonfinite, "SECONDS", 0.02)
    monkeypatch.setattr(rerun_nonfinite, "STEPS", 0)
    x = torch.rand(8, 4)
    model = Long()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, **QUIET) as w:
        loss = model(x).mean()
        began = time.perf_counter()
        loss.backward()
        took = time.perf_counter() - began
        optimiser.step()
    assert took < 1.0
    assert any("was not done again to its end" in note for note in w.notes), w.notes


def test_taking_apart_costs_at_most_fifty_steps_or_two_seconds() -> None:
    model, optimiser, loop = CASES["log of a negative"].train()
    longest = 0.0
    with sleuth.watch(model, optimiser, **QUIET) as w:
        began = time.perf_counter()
        for _ in loop:
            longest, began = max(longest, time.perf_counter() - began), time.perf_counter()
    assert seen(w, Origin)
    assert longest < 2.0

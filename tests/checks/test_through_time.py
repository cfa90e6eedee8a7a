"""Recurrences in which the beginning of a sequence drowns or thunders, and those that only look like it."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sleuth.adapters import adapter_for
from sleuth.checks import all_checks
from sleuth.core.engine import Engine, Judgement
from sleuth.core.observation import Step
from sleuth.core.settings import Configuration
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab, all_probes
from tests.checks.looking import BASIS, training
from tests.material import digits

FADES, GROWS = "vanishing-gradients", "exploding-gradients"
LENGTH = 40


def rows(*, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """The eight rows of a digit at one end of a sequence, and faint noise everywhere else."""
    x, y = digits()
    noise = np.random.default_rng(0).normal(0, 0.1, (len(x), LENGTH, 8)).astype(np.float32)
    place = slice(LENGTH - 8, LENGTH) if last else slice(8)
    noise[:, place] += x.reshape(-1, 8, 8) / x.std()
    return noise, y


class Turns(nn.Module):
    """A recurrence by hand: `gain` times an orthogonal matrix."""

    def __init__(self, gain: float, squash: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.into, self.head = nn.Linear(8, 24), nn.Linear(24, 10)
        self.again = nn.Parameter(gain * torch.linalg.qr(torch.randn(24, 24))[0])
        self.squash = squash

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 24)
        for t in range(x.shape[1]):
            h = self.squash(self.into(x[:, t]) + h @ self.again)
        return self.head(h)


class Cell(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = kind(8, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


def judged(model: nn.Module, *, last: bool = False, steps: int = 40, rate: float = 1e-3) -> Judgement:
    """Experiments on the model as it is, and the losses of its training."""
    subject = training(model, data=rows(last=last))
    engine = Engine(all_checks(), Configuration(select=(FADES, GROWS)))
    adapter = adapter_for(model)
    lab = Lab(subject, adapter, 60.0)
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        lab.bench_ = bench
        for probe in all_probes():
            if probe.name in BASIS | {"flowing", "time_reach"}:
                run_probe(probe, lab, engine.emit)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for step, (x, y) in zip(range(steps), subject.train, strict=False):
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        engine.emit(Step(step, loss.item(), rate))
    return engine.judge()


def test_a_beginning_that_decides_and_is_not_heard_is_named() -> None:
    (finding,) = judged(Turns(0.5, torch.tanh)).findings
    assert finding.name == FADES
    assert finding.where == "again"
    assert "out of reach" in finding.summary


def test_a_recurrence_that_forgets_is_no_harm_where_the_end_decides() -> None:
    """Not even if nothing is learned."""
    assert not judged(Turns(0.5, torch.tanh), last=True, rate=1e-9).findings
    assert not judged(Cell(nn.LSTM), last=True, rate=1e-9).findings


def test_a_recurrence_that_keeps_what_it_is_told_is_silent() -> None:
    assert not judged(Turns(1.0, lambda h: h), rate=1e-9).findings


def test_turns_that_each_make_the_gradient_larger_are_named_with_the_weight() -> None:
    (finding,) = judged(Turns(1.4, lambda h: h), steps=0).findings
    assert finding.name == GROWS
    assert finding.where == "again"
    assert finding.location is not None
    assert not judged(Cell(nn.GRU), steps=0).findings

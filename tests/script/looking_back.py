"""A loop under the watch of `sleuth run`, and what is found in the data that passed by when it is over."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters import adapter_named
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.report import Report
from sleuth.core.stage import Stage
from sleuth.probes.lab.probe import all_probes
from sleuth.session import aftermath
from sleuth.session.report import report_of
from sleuth.session.watch import Watch

SECONDS = 60.0
OF_DATA = [probe for probe in all_probes() if probe.stage is Stage.DATA]

Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]
Loop = Callable[[nn.Module, torch.optim.Optimizer], None]


def looked_back(loop: Loop, inputs: int, outputs: int, model: nn.Module | None = None) -> Report:
    """Only the data is examined; which steps are heard does not depend on the time."""
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    engine = Engine([c for c in all_checks() if c.stage is Stage.DATA])
    adapter = adapter_named("torch")
    watch = Watch(
        adapter, model, [optimiser], engine, every=8, overhead=0.02, folder=None, quiet=True, name="", keeps=True
    ).open()
    try:
        loop(model, optimiser)
    finally:
        recorded = watch.end()
        aftermath.examine(recorded, SECONDS, lambda text: None, OF_DATA)
        recorded.close()
    found = report_of(recorded, source="run")
    assert not found.notes
    return found


def train(model: nn.Module, optimiser: torch.optim.Optimizer, batches: Batches) -> None:
    model.train()
    for x, y in batches:
        optimiser.zero_grad()
        loss_of(model, x, y).backward()
        optimiser.step()


@torch.no_grad()
def ask(model: nn.Module, batches: Batches) -> float:
    model.eval()
    return float(np.mean([loss_of(model, x, y).item() for x, y in batches]))


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    answers = model(x)
    return functional.cross_entropy(answers, y) if y.dtype is torch.int64 else functional.mse_loss(answers.squeeze(-1), y)


def names(report: Report) -> set[str]:
    return {finding.name for finding in report.findings}

"""Loops for the tests of who holds a graph, a state or memory."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.core.finding import Finding
from tests.material import digits

MINE = ["graph-retained", "hidden-state-not-detached", "memory-grows", "backward-fails", "forward-fails"]
X, Y = (torch.as_tensor(a[:512]) for a in digits())
STEPS = 150


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def batches(steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for i in range(steps):
        rows = slice(i % 16 * 32, i % 16 * 32 + 32)
        yield X[rows], Y[rows]


def report_of(run: Callable[..., None], model: nn.Module | None = None, optimiser=None, **options) -> sleuth.Report:
    """`run(model, optimiser)` inside a watch."""
    model = model or mlp()
    optimiser = optimiser or torch.optim.Adam(model.parameters(), 1e-3)
    options = {"directory": None, "quiet": True, "select": MINE, **options}
    with sleuth.watch(model, optimiser, **options) as w:
        run(model, optimiser)
    assert not w.notes, w.notes
    return w.report()


def plainly(each: Callable[[int, torch.Tensor, torch.Tensor], None], steps: int = STEPS) -> Callable[..., None]:
    """A plain loop; `each` is given the number, the loss and the output of every step."""

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for i, (x, y) in enumerate(batches(steps)):
            optimiser.zero_grad()
            output = model(x)
            loss = functional.cross_entropy(output, y)
            loss.backward()
            optimiser.step()
            each(i, loss, output)

    return run


def only(report: sleuth.Report) -> Finding:
    (culprit,) = report.culprits
    return culprit.finding


def named_by_exception(run: Callable[..., None], model: nn.Module) -> list[str]:
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    watch = sleuth.watch(model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(RuntimeError), watch:
        run(model, optimiser)
    report = watch.report()
    assert not watch.notes, watch.notes
    return [f.name for c in report.culprits for f in (c.finding, *c.symptoms)]

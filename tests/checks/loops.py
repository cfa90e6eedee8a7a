"""Small loops as people write them, for the checks of their order: each is run under watch, on real digits."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice

import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.core.observation import Step
from tests.material import digits

CHECKS = [
    "missing-zero-grad",
    "gradients-erased",
    "missing-step",
    "training-in-eval-mode",
    "validating-in-train-mode",
    "validation-builds-graph",
    "scheduler-before-optimiser",
    "clipping-misplaced",
    "optimiser-rebuilt",
]
STEPS = 24


def net(*, dropout: float = 0.0, norm: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(64, 24)]
    layers += [nn.BatchNorm1d(24)] if norm else []
    layers += [nn.ReLU()]
    layers += [nn.Dropout(dropout)] if dropout else []
    return nn.Sequential(*layers, nn.Linear(24, 10))


def batches(count: int = STEPS, size: int = 32) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    x, y = (torch.as_tensor(a) for a in digits())
    starts = cycle(range(0, len(x) - size, size))
    return ((x[i : i + size], y[i : i + size]) for i in islice(starts, count))


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def watch(model: nn.Module, optimisers, run: Callable[[], None], **options) -> sleuth.Report:
    """Only the checks of the order are asked."""
    settings = {"directory": None, "quiet": True, "select": CHECKS, **options}
    with sleuth.watch(model, optimisers, **settings) as w:
        run()
    assert w.watching.trouble is None, w.watching.trouble
    assert not w.watching.remarks, w.watching.remarks
    report = w.report()
    assert "sleuth-failed" not in names(report), report.to_text()
    return report


def steps_of(model: nn.Module, optimisers, run: Callable[[], None], **options) -> list[Step]:
    with sleuth.watch(model, optimisers, directory=None, quiet=True, select=CHECKS, **options) as w:
        run()
    assert w.watching.trouble is None, w.watching.trouble
    return w.history.many(Step)


def names(report: sleuth.Report) -> list[str]:
    return [finding.name for finding in report.findings]


def sgd(model: nn.Module, lr: float = 0.05, **options) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr, **options)


def train(model, optimiser, count: int = STEPS, after=lambda: None) -> None:
    model.train()
    for batch in batches(count):
        optimiser.zero_grad()
        loss_of(model, batch).backward()
        optimiser.step()
        after()

"""Lets something raise, watched or not, and hands back what is made of it."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import torch
from torch import nn

import sleuth
from sleuth import Report
from sleuth.adapters.torch import ADAPTER
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.observation import Observation
from sleuth.script.post_mortem import explain_crash
from sleuth.session.report import build_report

X = torch.rand(64, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(64) % 4


def mlp(classes: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, classes))


def raised_by(act: Callable[..., object], *args: object) -> BaseException:
    try:
        act(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def explained(act: Callable[..., object], *args: object) -> list[Observation]:
    return explain_crash(raised_by(act, *args), [ADAPTER.explain])


def report_without_watch(act: Callable[..., object], *args: object) -> Report:
    engine = Engine(all_checks())
    for observation in explained(act, *args):
        engine.emit(observation)
    return build_report(engine, source="run", framework="torch", subject="script", seconds=0.0)


def report_of_watch(loop: Callable[..., object], model: nn.Module) -> Report:
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    with suppress(Exception), sleuth.watch(model, optimiser, directory=None, quiet=True) as w:
        loop(model, optimiser)
    assert w.watching.trouble is None, w.watching.trouble
    return w.report()


def report_without(loop: Callable[..., object], model: nn.Module) -> Report:
    return report_without_watch(loop, model, torch.optim.Adam(model.parameters(), 1e-3))


def findings(report: Report) -> Iterator[Finding]:
    for culprit in report.culprits:
        yield culprit.finding
        yield from culprit.symptoms


def finding(report: Report, name: str) -> Finding:
    found = [f for f in findings(report) if f.name == name]
    assert found, report.to_text()
    return found[0]

"""Judging a training by some checks alone, with only the experiments that they read: seconds instead of minutes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth.adapters import adapter_for
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.settings import Configuration
from sleuth.core.subject import Subject
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab, all_probes
from tests.material import digits

BASIS = {"reading", "describing", "first_pass"}
OWN = {
    "bad-initialisation": {"start"},
    "signal-grows-or-fades": set(),
    "dead-units": set(),
    "unregistered-layers": {"connecting"},
    "frozen-parameters": {"trunk"},
    "disconnected-parameters": {"connecting"},
    "parameters-not-optimised": {"connecting"},
    "input-ignored": {"dependence"},
    "samples-mix": {"dependence"},
    "gradient-wrong": {"connecting", "gradient_check"},
    "train-eval-disagree": {"modes"},
    "missing-nonlinearity": {"flowing", "start"},
    "dropout-too-strong": {"flowing"},
    "bias-before-norm": {"flowing"},
    "collapsed-output": {"spreading"},
    "capacity-mismatch": {"flowing", "counting"},
}

WIRING = ("unregistered-layers", "frozen-parameters", "disconnected-parameters", "parameters-not-optimised")


@dataclass(frozen=True)
class Look:
    findings: tuple[Finding, ...]
    not_examined: dict[str, str]
    history: Any

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.findings]

    def one(self) -> Finding:
        assert len(self.findings) == 1, self.findings
        return self.findings[0]


def look(subject: Subject, *names: str) -> Look:
    """All checks of this list when none is named."""
    names = names or tuple(OWN)
    return look_with(BASIS.union(*(OWN[name] for name in names)), subject, *names)


def look_with(wanted: set[str], subject: Subject, *names: str) -> Look:
    """The named checks after the wanted experiments."""
    engine = Engine(all_checks(), Configuration(select=names))
    adapter = adapter_for(subject.model)
    lab = Lab(subject, adapter, 60.0)
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        lab.bench_ = bench
        for probe in all_probes():
            if probe.name in wanted:
                run_probe(probe, lab, engine.emit)
    judged = engine.judge()
    return Look(judged.findings, judged.not_examined, engine.history)


def training(
    model: nn.Module,
    loss: Callable[..., Any] | None = None,
    data: tuple[np.ndarray, ...] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    **options: Any,
) -> Subject:
    """Digits in shuffled batches of 32 with Adam, unless said otherwise."""
    arrays = [torch.as_tensor(a) for a in (data or digits())]
    generator = torch.Generator().manual_seed(0)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*arrays), batch_size=32, shuffle=True, generator=generator
    )
    trainable = [p for p in model.parameters() if p.requires_grad]
    if optimizer is None and trainable:
        optimizer = torch.optim.Adam(trainable, lr=1e-3)
    return Subject(model, loader, None if "step" in options else loss or nn.CrossEntropyLoss(), optimizer, **options)

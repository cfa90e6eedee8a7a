"""Judging a training by what the data, its description and one pass show: quick enough for many small set-ups."""

from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Report, Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.settings import Configuration
from sleuth.probes.data.reading import reading
from sleuth.probes.data.sample_order import order
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.describing import describing
from sleuth.probes.model.first_pass import first_pass
from sleuth.session.report import build_report


def judge(model: nn.Module, train: Any, loss: Any = None, *, checks: list[str], **parts: Any) -> Report:
    loss = loss or (None if "step" in parts else nn.CrossEntropyLoss())
    subject = Subject(model, train, loss, optim.Adam(model.parameters(), lr=1e-3), **parts)
    lab = Lab(subject, ADAPTER, budget_seconds=60)
    engine = Engine(all_checks(), Configuration(select=tuple(checks)))
    with ExitStack() as stack:
        stack.enter_context(ADAPTER.preserve(subject))
        lab.bench_ = stack.enter_context(ADAPTER.bench(subject))
        for probe in (reading, order, describing, first_pass):
            run_probe(probe, lab, engine.emit)
    return build_report(engine, source="examine", framework="torch", subject="", seconds=0.0)


def names(report: Report) -> list[str]:
    return [f.name for f in report.findings]


def loader(*arrays: Any, **options: Any) -> DataLoader:
    """Shuffled batches of 32, unless told otherwise."""
    return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), **{"batch_size": 32, "shuffle": True, **options})


def mlp(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def raw_images(images: np.ndarray) -> np.ndarray:
    """Images in 0..1 as a file would give them, in three colours."""
    return np.repeat(np.round(images * 255), 3, axis=1).astype(np.float32)

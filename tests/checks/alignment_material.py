"""Data with labels that belong, or that were mixed up on purpose, and how they are judged."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.labels_misaligned import labels_misaligned
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.stage import Severity
from sleuth.core.trial import Alignment
from sleuth.probes.data.alignment import alignment
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from tests.material import digits

Pair = tuple[np.ndarray, np.ndarray]


class Recurrent(nn.Module):
    def __init__(self, tokens: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, 16)
        self.recurrent = nn.GRU(16, 32, batch_first=True)
        self.last = nn.Linear(32, classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.last(self.recurrent(self.embedding(ids))[0][:, -1])


@dataclass(frozen=True)
class Verdict:
    finding: Finding | None
    reason: str | None
    trial: Alignment | None

    @property
    def is_clear(self) -> bool:
        return self.finding is None and self.reason is None

    @property
    def is_accused(self) -> bool:
        return self.finding is not None and self.finding.severity is not Severity.HINT


def judge(subject: Subject, clock: Callable[[], float] = time.monotonic) -> Verdict:
    lab, engine = Lab(subject, ADAPTER, 60.0, clock), Engine([labels_misaligned])
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        lab.bench_ = bench
        run_probe(reading, lab, engine.emit)
        run_probe(alignment, lab, engine.emit)
    judged = engine.judge()
    reason = judged.not_examined.get("labels-misaligned")
    return Verdict(next(iter(judged.findings), None), reason, engine.history.single(Alignment))


def training(x: np.ndarray, y: np.ndarray, validation: Pair | None = None) -> Subject:
    classes = int(y.max()) + 1 if y.dtype.kind == "i" else 1
    model = (
        Recurrent(int(x.max()) + 1, classes)
        if x.dtype.kind == "i"
        else nn.Sequential(nn.Flatten(), nn.Linear(x[0].size, 64), nn.ReLU(), nn.Linear(64, classes))
    )
    loss = nn.CrossEntropyLoss() if y.dtype.kind == "i" else nn.MSELoss()
    held_out = None if validation is None else loader(*validation, shuffle=False)
    return Subject(model, loader(x, y), loss, torch.optim.Adam(model.parameters(), lr=1e-3), held_out)


def loader(x: np.ndarray, y: np.ndarray, shuffle: bool = True) -> DataLoader:
    return DataLoader(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)), batch_size=32, shuffle=shuffle)


def alone(x: np.ndarray, y: np.ndarray) -> Verdict:
    """With a model that cannot try: quick, for what the orders of the targets tell."""
    return judge(Subject(nn.Linear(1, 1), loader(x, y), nn.MSELoss()))


def shuffled(pair: Pair, seed: int = 0) -> Pair:
    return pair[0], pair[1][np.random.default_rng(seed).permutation(len(pair[1]))]


def topics(seed: int = 0, samples: int = 2000) -> Pair:
    """Sentences of 24 tokens about one of five topics."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(500, 0.05), size=5)
    labels = rng.integers(0, 5, samples)
    return np.stack([rng.choice(500, 24, p=words[label]) for label in labels]), labels


def latent(rng: np.random.Generator, width: int = 20) -> np.ndarray:
    """Columns that depend on four hidden ones, as those of real tables do."""
    return (rng.normal(size=(2000, 4)) @ rng.normal(size=(4, width)) + 0.5 * rng.normal(size=(2000, width))).astype(np.float32)


def independent(rng: np.random.Generator, width: int = 20) -> np.ndarray:
    return rng.normal(size=(2000, width)).astype(np.float32)


def four_percent_better(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two classes, of which the best possible guess gets 54 % right."""
    score = x @ rng.normal(size=x.shape[1])
    return np.where(rng.random(len(x)) < 0.54, score > np.median(score), score <= np.median(score)).astype(np.int64)


def explained_by_two_percent(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    score = x @ rng.normal(size=x.shape[1])
    return (np.sqrt(0.02) * score / score.std() + np.sqrt(0.98) * rng.normal(size=len(x))).astype(np.float32)[:, None]


def modular_sum(seed: int = 0) -> Pair:
    """Digits to be added modulo 5, padded: nothing that simple learners could find."""
    rng = np.random.default_rng(seed)
    ids = np.where(np.arange(16) < rng.integers(4, 17, (2000, 1)), rng.integers(1, 10, (2000, 16)), 0)
    return ids, ids.sum(1) % 5


def pairs_of_digits(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    (x, y), first, second = digits(), *rng.integers(0, 1797, (2, 2000))
    return np.concatenate([x[first], x[second]], axis=1), (y[first] == y[second]).astype(np.int64)


def next_value(seed: int = 0) -> Pair:
    """White noise in windows, each with the value that comes next: unpredictable, but honest."""
    series = np.random.default_rng(seed).normal(size=2100).astype(np.float32)
    return np.lib.stride_tricks.sliding_window_view(series, 16)[:2000].copy(), series[16:2016, None].copy()


def next_return(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    returns = (rng.standard_t(4, size=(2001, 8)) + rng.normal(size=(2001, 1))).astype(np.float32)
    return returns[:-1], returns[1:, :1].copy()


def walks(seed: int) -> Pair:
    """Inputs and targets that wander, each for itself: at some shift they resemble each other."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(1000, 6)).cumsum(0).astype(np.float32), rng.normal(size=(1000, 1)).cumsum(0).astype(np.float32)


def fading(seed: int) -> Pair:
    """Half of each row is left in the next one."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(1500, 7))
    for row in range(1, len(series)):
        series[row] += 0.5 * series[row - 1]
    return series[:, :6].astype(np.float32), series[:, 6:].astype(np.float32)


def hourly(seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(1500)[:, None] / 24
    x = np.sin(angle + rng.uniform(0, 6, 4)) + 0.5 * rng.normal(size=(1500, 4))
    return x.astype(np.float32), (np.sin(angle + rng.uniform(0, 6)) + 0.3 * rng.normal(size=(1500, 1))).astype(np.float32)


def weekly(seed: int) -> Pair:
    """One column and the target depend on the day of the week; the line between them fits best on other days."""
    rng = np.random.default_rng(seed)
    day = np.arange(1400) % 7
    x = rng.normal(size=(1400, 5))
    x[:, 0] = rng.normal(size=7)[day] + 0.1 * rng.normal(size=1400)
    return x.astype(np.float32), (rng.normal(size=7)[day] + 0.3 * rng.normal(size=1400)).astype(np.float32)[:, None]


def a_day_ahead(seed: int) -> Pair:
    returns = np.random.default_rng(seed).standard_t(4, size=(1524, 6)).astype(np.float32)
    return returns[:-24], returns[24:, :1].copy()

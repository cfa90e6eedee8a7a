"""Padded sentences and signals, and how they are judged."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.padding_counts_in_loss import padding_counts_in_loss
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.trial import Padding
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.padding import padding

WORDS, TAGS, LENGTH = 30, 5, 12


@dataclass(frozen=True)
class Verdict:
    finding: Finding | None
    reason: str | None
    trial: Padding | None

    @property
    def is_clear(self) -> bool:
        return self.finding is None and self.reason is None


def judge(model: nn.Module, train: Any, loss: Any = None, **options: Any) -> Verdict:
    subject = Subject(model, train, loss, torch.optim.Adam(model.parameters()), **options)
    lab, engine = Lab(subject, ADAPTER, 60.0), Engine([padding_counts_in_loss])
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        lab.bench_ = bench
        run_probe(reading, lab, engine.emit)
        run_probe(padding, lab, engine.emit)
    judged = engine.judge()
    name = "padding-counts-in-loss"
    return Verdict(next(iter(judged.findings), None), judged.not_examined.get(name), engine.history.single(Padding))


def loader(*arrays: np.ndarray, batch_size: int = 32) -> DataLoader:
    return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), batch_size=batch_size, shuffle=True)


def sentences(shortest: int = 3, filler: int = 0, side: str = "right", count: int = 320) -> tuple[np.ndarray, np.ndarray]:
    """Word ids and a tag for each word; `filler` is the tag of padding, and the id of padding is 0."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1, WORDS, (count, LENGTH))
    tags = 1 + ids % (TAGS - 1)
    empty = np.arange(LENGTH) >= rng.integers(shortest, LENGTH + 1, (count, 1))
    empty = empty if side == "right" else empty[:, ::-1]
    return np.where(empty, 0, ids), np.where(empty, filler, tags)


class Tagger(nn.Module):
    def __init__(self, layout: str = "last", packed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 8, padding_idx=0)
        self.gru = nn.GRU(8, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, TAGS)
        self.layout, self.packed = layout, packed

    def forward(self, ids: Tensor) -> Any:
        hidden = self.embedding(ids)
        if self.packed:
            lengths = (ids != 0).sum(1).clamp(min=1)
            rows = pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
            hidden = pad_packed_sequence(self.gru(rows)[0], batch_first=True, total_length=ids.shape[1])[0]
        else:
            hidden = self.gru(hidden)[0]
        scores = self.head(hidden)
        match self.layout:
            case "first":
                return scores.transpose(1, 2)
            case "flat":
                return scores.flatten(0, 1)
            case "time":
                return scores.transpose(0, 1)
            case "dict":
                return {"hidden": hidden.mean(1), "logits": scores}
        return scores

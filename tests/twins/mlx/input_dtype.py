"""Letters of a text as numbers: read from a table that made them floats, and as whole numbers."""

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth import Subject
from sleuth.testing import Kit

TEXT = (Path(__file__).parents[3] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT = 8


class NextLetter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 32)
        self.body = nn.Sequential(nn.Linear(32 * CONTEXT, 64), nn.ReLU(), nn.Linear(64, len(LETTERS)))

    def __call__(self, ids: mx.array) -> mx.array:
        return self.body(self.embedding(ids).reshape(ids.shape[0], -1))


def sick(kit: Kit) -> Subject:
    return _training(kit, np.float32)


def healthy(kit: Kit) -> Subject:
    return _training(kit, np.int32)


def _training(kit: Kit, dtype: type) -> Subject:
    ids = np.array([LETTERS.index(c) for c in TEXT])
    starts = np.arange(0, len(ids) - CONTEXT, 7)
    x, y = np.stack([ids[s : s + CONTEXT] for s in starts]).astype(dtype), ids[starts + CONTEXT]
    model = NextLetter()
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))

"""A character model of a real text: attention without its causal mask, and with it."""

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth import Subject
from sleuth.testing import Kit

TEXT = (Path(__file__).parents[3] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT = 16


def windows() -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([LETTERS.index(c) for c in TEXT], dtype=np.int64)
    starts = np.arange(0, len(ids) - CONTEXT - 1, 7)
    return np.stack([ids[s : s + CONTEXT] for s in starts]), np.stack([ids[s + 1 : s + CONTEXT + 1] for s in starts])


class Model(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.embedding = nn.Embedding(len(LETTERS), 32)
        self.positions = nn.Embedding(CONTEXT, 32)
        self.attention = nn.MultiHeadAttention(32, 4)
        self.norm = nn.LayerNorm(32)
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, len(LETTERS)))

    def __call__(self, ids: mx.array) -> mx.array:
        hidden = self.embedding(ids) + self.positions(mx.arange(ids.shape[1]))
        mask = nn.MultiHeadAttention.create_additive_causal_mask(ids.shape[1]) if self.causal else None
        return self.body(self.norm(hidden + self.attention(hidden, hidden, hidden, mask)))


def sick(kit: Kit) -> Subject:
    return _training(kit, causal=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, causal=True)


def _training(kit: Kit, causal: bool) -> Subject:
    model = Model(causal)
    return Subject(model, kit.loader(*windows()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))

"""A character model of a real text: attention without its causal mask, and with it."""

from pathlib import Path

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


def training(kit: Kit, causal: bool) -> Subject:
    kit.require("torch")
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(len(LETTERS), 32)
            self.positions = nn.Embedding(CONTEXT, 32)
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
            self.norm = nn.LayerNorm(32)
            self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, len(LETTERS)))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            hidden = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1]) if causal else None
            mixed, _ = self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)
            return self.body(self.norm(hidden + mixed))

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits.transpose(1, 2), targets)

    model = Model()
    return Subject(model, kit.loader(*windows()), loss, kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, causal=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, causal=True)

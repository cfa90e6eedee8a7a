"""A tiny causal language model over the characters of this project's licence, tied embeddings."""

from pathlib import Path

import numpy as np
import torch
from torch import nn, optim

from sleuth import Subject
from tests.zoo.data import split_loaders

TEXT = (Path(__file__).parents[2] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT = 24


class CausalLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 48)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.positions = nn.Embedding(CONTEXT, 48)
        nn.init.normal_(self.positions.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(48, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(48)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        hidden = self.embedding(ids) + self.positions(torch.arange(length))
        hidden = self.norm(self.body(hidden, mask=mask, is_causal=True))
        return hidden @ self.embedding.weight.T


def next_letter_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build() -> Subject:
    ids = np.array([LETTERS.index(c) for c in TEXT], dtype=np.int64)
    starts = np.arange(0, len(ids) - CONTEXT - 1, 8)
    x = np.stack([ids[s : s + CONTEXT] for s in starts])
    y = np.stack([ids[s + 1 : s + CONTEXT + 1] for s in starts])
    model = CausalLM()
    train, _ = split_loaders(x, y)
    return Subject(model, train, next_letter_loss, optim.AdamW(model.parameters(), lr=2e-3))

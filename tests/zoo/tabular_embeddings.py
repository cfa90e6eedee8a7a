"""A table with categories: ids go to embeddings, numbers go in directly; batches are (ids, numbers, target)."""

import numpy as np
import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import cancer
from tests.zoo.data import split_loaders


class Tabular(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(5, 4) for _ in range(3)])
        self.body = nn.Sequential(nn.Linear(12 + 27, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        looked_up = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        return self.body(torch.cat([*looked_up, numbers], dim=1))


def build() -> Subject:
    x, y = cancer()
    edges = np.quantile(x[:, :3], [0.2, 0.4, 0.6, 0.8], axis=0)
    ids = np.stack([np.searchsorted(edges[:, i], x[:, i]) for i in range(3)], axis=1).astype(np.int64)
    model = Tabular()
    train, validation = split_loaders(ids, x[:, 3:], y[:, None].astype(np.float32))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)

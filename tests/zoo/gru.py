"""A bidirectional GRU over characters that tells two kinds of words apart; dictionaries as batches."""

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

from sleuth import Subject

LENGTH = 12


class Words(Dataset):
    """Vowel-rich against consonant-rich strings, padded."""

    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 2, count)
        self.ids = np.zeros((count, LENGTH), dtype=np.int64)
        for row, label in zip(self.ids, self.labels, strict=True):
            letters = rng.integers(3, LENGTH + 1)
            vowel = rng.random(letters) < (0.7 if label else 0.2)
            row[:letters] = np.where(vowel, rng.choice([1, 5, 9, 15, 21], letters), rng.integers(1, 27, letters))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict[str, object]:
        return {"ids": self.ids[i], "labels": int(self.labels[i])}


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(27, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        _, last = self.gru(self.embedding(ids))
        return self.head(torch.cat([last[0], last[1]], dim=1))


def build() -> Subject:
    model = Tagger()
    train = DataLoader(Words(1200, 0), batch_size=32, shuffle=True)
    validation = DataLoader(Words(300, 1), batch_size=64)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)

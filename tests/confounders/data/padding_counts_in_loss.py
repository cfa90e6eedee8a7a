"""Most of the positions that enter the loss are padding."""

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader

from sleuth import Subject
from tests.confounders.bodies import Tagger, per_position
from tests.confounders.material import LETTERS, TEXT, TOKENS, cut, tagged
from tests.zoo.data import split_loaders

LONGEST = 64


class LineModel(nn.Module):
    """The next letter of a line; 0 is padding, so letters count from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, 24, padding_idx=0)
        self.gru = nn.GRU(24, 40, batch_first=True)
        self.head = nn.Linear(40, len(LETTERS) + 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.gru(self.embedding(ids))[0])


class Mirror(nn.Module):
    """Gives a padded sequence back with each token raised by one: (n, t) to (n, t, tokens)."""

    def __init__(self, length: int, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width, padding_idx=0)
        self.positions = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, TOKENS)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.encoder(self.embedding(ids) + self.positions, src_key_padding_mask=ids == 0)
        return self.head(hidden)


def mean_over_all_positions(scores: Tensor, target: Tensor) -> Tensor:
    likelihood = torch.log_softmax(scores, dim=-1).gather(-1, target.unsqueeze(-1))
    return -likelihood.mean()


def tagger_on_short_sentences() -> Subject:
    """Sentences of four to twelve tokens, padded to thirty-two."""
    x, y = (np.pad(a, ((0, 0), (0, 20))) for a in tagged(shortest=4))
    model = Tagger()
    train, validation = split_loaders(x, y)
    return Subject(model, train, per_position, optim.Adam(model.parameters(), lr=3e-3), validation)


def lines_padded_to_the_longest() -> Subject:
    """Lines are wrapped at twenty letters, and padded to the longest that might come."""
    text = " ".join(TEXT.split())
    lines = [text[start : start + 20].strip() for start in range(0, len(text) - 20, 17)]
    ids = np.zeros((len(lines), LONGEST), dtype=np.int64)
    for row, line in zip(ids, lines, strict=True):
        row[: len(line)] = [LETTERS.index(c) + 1 for c in line]
    samples = [[{"ids": row[:-1], "labels": row[1:]} for row in part] for part, _ in cut(ids, ids)]
    model = LineModel()
    optimiser = optim.RMSprop(model.parameters(), lr=2e-3)
    loaders = DataLoader(samples[0], batch_size=32, shuffle=True), DataLoader(samples[1], batch_size=64)
    return Subject(model, loaders[0], per_position, optimiser, loaders[1])


def transformer_with_own_mean() -> Subject:
    """Attention knows of the padding, the loss does not."""
    x, _ = tagged(count=1000, shortest=3)
    x = np.pad(x, ((0, 0), (0, 20)))
    y = np.where(x == 0, 0, x % (TOKENS - 1) + 1)
    model = Mirror(length=32)
    train, validation = split_loaders(x, y)
    return Subject(model, train, mean_over_all_positions, optim.AdamW(model.parameters(), lr=2e-3), validation)

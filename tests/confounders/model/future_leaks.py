"""A model that is to predict the next element can already see it."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import per_position
from tests.confounders.material import LETTERS, continued, letters
from tests.zoo.data import split_loaders


class Unmasked(nn.Module):
    """A letter model whose attention has no mask."""

    def __init__(self, length: int = 24, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(len(LETTERS), width)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))))


class TwoWay(nn.Module):
    """Reading in both directions helps taggers; here the way back tells the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 24)
        self.rnn = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, len(LETTERS))

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(ids))[0])


class Dilated(nn.Module):
    """Padded on both sides, so each output looks one, two and four steps ahead."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 3, padding=1)
        self.middle = nn.Conv1d(width, width, 3, padding=2, dilation=2)
        self.leave = nn.Conv1d(width, 1, 3, padding=4, dilation=4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.enter(x.transpose(1, 2)))
        h = torch.relu(self.middle(h))
        return self.leave(h).transpose(1, 2)


def transformer_without_a_mask() -> Subject:
    model = Unmasked()
    train, validation = split_loaders(*letters())
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=2e-3), validation)


def gru_in_both_directions() -> Subject:
    model = TwoWay()
    train, validation = split_loaders(*letters(length=32, stride=11))
    return Subject(model, train, per_position, optim.Adam(model.parameters(), lr=3e-3), validation)


def convolutions_padded_on_both_sides() -> Subject:
    model = Dilated()
    train, validation = split_loaders(*continued())
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)

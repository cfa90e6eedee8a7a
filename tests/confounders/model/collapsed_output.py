"""The model answers (almost) the same for every sample, although the input does reach the output."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import per_position
from tests.confounders.material import TOKENS, WORDS, sentences, tagged
from tests.material import wine
from tests.zoo.data import split_loaders


class LateReader(nn.Module):
    """Short sentences, padded to thirty-two: when the last state is read, the words are long forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, ids: Tensor) -> Tensor:
        padded = nn.functional.pad(ids, (0, 32 - ids.shape[1]))
        states, _ = self.lstm(self.embedding(padded))
        return self.head(states[:, -1])


class PositionsOnly(nn.Module):
    """Token vectors of length one in ten thousand, drowned by the positions they are added to."""

    def __init__(self, length: int = 12, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, width)
        self.positions = nn.Parameter(torch.randn(1, length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(ids) * 1e-4 + self.positions))


def lstm_read_after_long_padding() -> Subject:
    model = LateReader()
    x, y = sentences()
    train, validation = split_loaders(x, y.astype("float32")[:, None])
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)


def transformer_drowned_by_positions() -> Subject:
    model = PositionsOnly()
    train, validation = split_loaders(*tagged())
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=1e-3), validation)


def softmax_as_hidden_activation() -> Subject:
    """Softmax between the layers leaves every unit near one over their number, layer after layer."""
    model = nn.Sequential(
        nn.Linear(13, 96),
        nn.Softmax(dim=1),
        nn.Linear(96, 96),
        nn.Softmax(dim=1),
        nn.Linear(96, 3),
    )
    train, validation = split_loaders(*wine())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)

"""Output and target have shapes that this loss cannot take together."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import LETTERS, letters, masks
from tests.material import cancer
from tests.zoo.data import split_loaders


class CharGRU(nn.Module):
    """Scores as (n, t, letters); cross-entropy wants the classes second."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 32)
        self.gru = nn.GRU(32, 48, batch_first=True)
        self.decoder = nn.Linear(48, len(LETTERS))

    def forward(self, ids: Tensor) -> Tensor:
        return self.decoder(self.gru(self.embedding(ids))[0])


class Segmenter(nn.Module):
    """Convolutions without padding: the mask that comes out is smaller than the one that is wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 16, 3)
        self.up = nn.Conv2d(16, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(torch.relu(self.down(x)))


def gru_letters_with_classes_last() -> Subject:
    model = CharGRU()
    train, validation = split_loaders(*letters())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def two_units_for_one_binary_target() -> Subject:
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    x, y = cancer()
    train, validation = split_loaders(x, y[:, None].astype("float32"))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), lr=0.1), validation)


def segmentation_that_shrinks() -> Subject:
    model = Segmenter()
    train, validation = split_loaders(*masks())
    loss = nn.functional.binary_cross_entropy_with_logits
    return Subject(model, train, loss, optim.AdamW(model.parameters(), lr=3e-3), validation)

"""An LSTM that reads a digit row by row."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 48, num_layers=2, batch_first=True)
        self.head = nn.Linear(48, 10)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        outputs, _ = self.lstm(rows)
        return self.head(outputs[:, -1])


def build() -> Subject:
    model = Reader()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)

"""A pre-norm transformer encoder over the rows of a digit, with positions and a class token."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 48)
        self.token = nn.Parameter(torch.zeros(1, 1, 48))
        self.positions = nn.Parameter(torch.randn(1, 9, 48) * 0.02)
        layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, 10)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        tokens = torch.cat([self.token.expand(len(rows), -1, -1), self.embed(rows)], dim=1)
        return self.head(self.norm(self.encoder(tokens + self.positions)[:, 0]))


def build() -> Subject:
    model = Classifier()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)

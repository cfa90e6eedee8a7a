"""A trunk that was really trained on other digits, now frozen and in eval mode, with a new head."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


class FineTuned(nn.Module):
    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        self.head = nn.Linear(32, 5)

    def train(self, mode: bool = True) -> "FineTuned":
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(x))


def pretrained() -> nn.Module:
    x, y = digits()
    old = torch.as_tensor(y < 5)
    inputs, labels = torch.as_tensor(x)[old], torch.as_tensor(y)[old]
    trunk = nn.Sequential(nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    head = nn.Linear(32, 5)
    optimiser = optim.Adam([*trunk.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(head(trunk(inputs)), labels).backward()
        optimiser.step()
    return trunk


def build() -> Subject:
    model = FineTuned(pretrained()).train()
    x, y = digits()
    train, validation = split_loaders(x[y >= 5], y[y >= 5] - 5)
    optimiser = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)

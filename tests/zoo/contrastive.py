"""Contrastive learning of two noisy views: a loss across samples, no targets."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import loader


def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    (x,) = batch
    one, other = (nn.functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
    return nn.functional.cross_entropy(one @ other.T / 0.2, torch.arange(len(x)))


def build() -> Subject:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    train = loader(digits()[0], batch_size=64)
    return Subject(model, train, step=step, optimizer=optim.Adam(model.parameters(), lr=1e-3))

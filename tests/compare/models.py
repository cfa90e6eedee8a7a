"""One small model in two forms, and what it is compared on."""

from typing import Any

import numpy as np
import torch
from torch import nn

import sleuth
from tests.kits import numpy_layers as by_hand
from tests.kits.numpy_kit import NumpyKit

X = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32)
Y = np.arange(12) % 4
IMAGES = np.random.default_rng(0).normal(size=(6, 3, 8, 8)).astype(np.float32)


def mlp(epsilon: float = 1e-5, **gelu: Any) -> nn.Module:
    """The layer in the middle is square: its shape does not say which way it lies."""
    norm = nn.LayerNorm(16, eps=epsilon)
    return nn.Sequential(nn.Linear(8, 16), norm, nn.GELU(**gelu), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def subject(model: nn.Module, optimiser: Any = torch.optim.Adam, loss: Any = None, **options: Any) -> sleuth.Subject:
    made = optimiser(model.parameters(), lr=1e-3, **options)
    return sleuth.Subject(model, None, loss or nn.CrossEntropyLoss(), made)


def mlp_by_hand() -> sleuth.Subject:
    """With the gelu that has a tanh in it."""
    kit = NumpyKit()
    layers = (by_hand.Linear(8, 16), by_hand.LayerNorm(16), by_hand.GELU(), by_hand.Linear(16, 16), by_hand.ReLU())
    model = kit.sequential(*layers, by_hand.Linear(16, 4))
    return sleuth.Subject(model, None, kit.loss("cross-entropy"), kit.optimiser(model))


class Images(nn.Module):
    def __init__(self, stride: int = 1, padding: int = 1, last: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=padding, stride=stride)
        self.norm = nn.BatchNorm2d(5)
        self.head = nn.Linear(5 * (8 // stride) ** 2, 4)
        self.last = last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.last:  # at the end, where other frameworks put what this one puts at both ends
            x = nn.functional.pad(x, (0, 1, 0, 1))
        return self.head(torch.relu(self.norm(self.conv(x))).flatten(1))

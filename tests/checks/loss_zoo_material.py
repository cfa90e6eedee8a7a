"""Models and data for every way to wire a loss."""

from functools import cache

import numpy as np
import torch
from torch import nn
from torch.nn import functional as fn
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from tests.material import digits


def training(model: nn.Module, arrays, loss=None, lr: float = 3e-3, **options) -> Subject:
    tensors = [torch.as_tensor(a) for a in arrays]
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(*tensors), batch_size=32, shuffle=True, drop_last=True, generator=generator)
    return Subject(model, loader, loss, torch.optim.Adam(model.parameters(), lr=lr), **options)


def mlp(inputs: int, outputs: int, *last: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs), *last)


@cache
def pixels() -> tuple[np.ndarray, np.ndarray]:
    """Standardised digits and their classes."""
    x, y = digits()
    return ((x - x.mean()) / x.std()).astype(np.float32), y


@cache
def strokes() -> tuple[np.ndarray, np.ndarray]:
    """Noisy images, and where the ink is: 0 paper, 1 edge, 2 ink."""
    x, _ = digits()
    noisy = x + np.random.default_rng(0).normal(0, 0.15, x.shape)
    noisy = ((noisy - noisy.mean()) / noisy.std()).astype(np.float32)
    return noisy.reshape(-1, 1, 8, 8), np.digitize(x, (0.25, 0.75)).astype(np.int64).reshape(-1, 8, 8)


def painter(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, channels, 3, padding=1))


@cache
def teacher() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = mlp(64, 10)
        x, y = (torch.as_tensor(a) for a in pixels())
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(60):
            optimiser.zero_grad()
            fn.cross_entropy(model(x), y).backward()
            optimiser.step()
    return model.requires_grad_(False).eval()


def focal(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    right = out.softmax(1).gather(1, y[:, None]).squeeze(1)
    return (-((1 - right) ** 2) * torch.log(right + 1e-8)).mean()


@cache
def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half of them of the same class: +1, else −1."""
    x, y = pixels()
    rng = np.random.default_rng(0)
    partner = [rng.choice(np.flatnonzero(y == c) if rng.random() < 0.5 else np.flatnonzero(y != c)) for c in y]
    return x, x[partner], np.where(y == y[partner], 1.0, -1.0).astype(np.float32)

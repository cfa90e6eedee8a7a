"""Trainings of PyTorch."""

import torch
from torch import nn
from torch.nn import functional

from benchmarks.watching.training import Training, looped

torch.set_num_threads(1)
torch.manual_seed(0)


def classifying(model: nn.Module, x: torch.Tensor, classes: int) -> Training:
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    y = torch.randint(0, classes, (len(x),))

    def step() -> torch.Tensor:
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    return looped(model, optimiser, step)


def mlp() -> Training:
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    return classifying(model, torch.randn(128, 784), 10)


def cnn() -> Training:
    def block(a: int, b: int) -> list[nn.Module]:
        return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]

    model = nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 16, 10))
    return classifying(model, torch.randn(32, 3, 32, 32), 10)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(64, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(tokens)).mean(1))


def transformer() -> Training:
    return classifying(Transformer(), torch.randint(0, 256, (16, 32)), 10)


def narrow() -> Training:
    """Three hundred layers that do almost nothing: what is paid for each of them shows."""
    layers = [layer for _ in range(150) for layer in (nn.Linear(8, 8), nn.Tanh())]
    return classifying(nn.Sequential(*layers), torch.randn(4, 8), 8)


TRAININGS = {
    "MLP 784-512-256-10": mlp,
    "CNN 3 blocks 32×32": cnn,
    "transformer 3 layers": transformer,
    "300 narrow layers": narrow,
}

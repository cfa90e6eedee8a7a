"""A variational autoencoder: random inside forward, a loss that cannot reach zero, given as a step."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import loader


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(code), mean, log_variance


def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    (x,) = batch
    logits, mean, log_variance = model(x)
    likeness = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(x)
    return likeness + divergence


def build() -> Subject:
    model = VAE()
    x, _ = digits()
    return Subject(model, loader(x), step=step, optimizer=optim.Adam(model.parameters(), lr=1e-3))

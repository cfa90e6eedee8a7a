"""The discriminator's step of a GAN: fakes from a generator that this optimiser does not hold."""

import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import loader


def build() -> Subject:
    discriminator = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid()).requires_grad_(False)

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        (real,) = batch
        fake = generator(torch.randn(len(real), 8)).detach()
        loss = nn.functional.binary_cross_entropy_with_logits
        return loss(model(real), torch.ones(len(real), 1)) + loss(model(fake), torch.zeros(len(real), 1))

    optimiser = optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    return Subject(discriminator, loader(digits()[0]), step=step, optimizer=optimiser)

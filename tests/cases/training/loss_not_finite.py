"""Counting bright pixels with a Poisson loss: the logarithm of a rate that ReLU sets to zero, or of one kept above it."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, smallest: float) -> Subject:
    kit.require("torch")
    import torch

    def poisson(rate: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        rate = torch.relu(rate) + smallest
        return (rate - count * torch.log(rate)).mean()

    x, _ = digits()
    counts = (x[:, 32:] > 0.9).sum(1, keepdims=True).astype(np.float32)
    model = kit.mlp(64, 32, 1)
    with torch.no_grad():
        model[-1].bias.fill_(0.5)
    return Subject(model, kit.loader(x, counts), poisson, kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    subject = training(kit, smallest=0.0)
    subject.model[-1].bias.data.fill_(0.0)
    return subject


def healthy(kit: Kit) -> Subject:
    return training(kit, smallest=0.1)

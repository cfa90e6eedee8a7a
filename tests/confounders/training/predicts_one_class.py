"""Whatever it is shown, the model names the same class, and its accuracy is that class's share."""

import numpy as np
import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import BagOfWords, mlp
from tests.confounders.material import sentences, waves
from tests.material import digits
from tests.zoo.data import split_loaders


def rare_digit_from_three_faint_pixels() -> Loop:
    """Is it a four? Every tenth is, and three pixels hardly tell: never to say so is right nine times of ten."""
    x, y = digits()
    pixels = ((x[:, [1, 17, 49]] - x[:, [1, 17, 49]].mean(0)) / x[:, [1, 17, 49]].std(0)).astype(np.float32)
    model = mlp(3, 16, 2)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    train, validation = split_loaders(pixels, (y == 4).astype(np.int64), batch_size=64)

    def run(w: object) -> None:
        for _ in range(15):
            model.train()
            for inputs, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                right = torch.cat([(model(a).argmax(1) == b).float() for a, b in validation])
            w.log(val_accuracy=right.mean().item())

    return Loop(model, [optimiser], run)


def sentences_of_which_one_in_six_is_flagged() -> Loop:
    """One logit and a threshold at a half: the flags are too rare and too noisy to reach it."""
    x, y = sentences()
    rng = np.random.default_rng(0)
    kept = np.flatnonzero((y == 0) | (rng.random(len(y)) < 0.2))
    noisy = np.where(rng.random(len(kept)) < 0.85, rng.permutation(y[kept]), y[kept])
    model = BagOfWords(outputs=1)
    optimiser = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    train, validation = split_loaders(x[kept], noisy.astype(np.float32)[:, None])
    criterion = nn.BCEWithLogitsLoss()

    def run(w: object) -> None:
        for _ in range(12):
            for ids, flags in train:
                optimiser.zero_grad()
                criterion(model(ids), flags).backward()
                optimiser.step()
            with torch.no_grad():
                told = torch.cat([((model(ids) > 0) == (flags > 0.5)).float() for ids, flags in validation])
            w.log(val_accuracy=told.mean().item())

    return Loop(model, [optimiser], run)


class Averaged(nn.Module):
    """Sees of a wave only its mean, which is the same for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(1, 16, 3, activation=nn.Tanh)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.mean(1))


def waves_of_which_one_kind_is_common() -> Loop:
    x, y = waves()
    rows = np.flatnonzero((y == 1) | (np.random.default_rng(1).random(len(y)) < 0.35))
    model = Averaged()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train, validation = split_loaders(x[rows], y[rows])

    def run(w: object) -> None:
        for _ in range(15):
            for inputs, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimiser.step()
            with torch.no_grad():
                right = [(model(a).argmax(1) == b).float().mean().item() for a, b in validation]
            w.log(val_accuracy=sum(right) / len(right))

    return Loop(model, [optimiser], run)

"""Losses that end far from zero, lie below it, are large sums or weigh their samples."""

import math

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import friedman, windows
from tests.material import cancer, digit_images, digits
from tests.zoo.data import loader


def cnn_with_smoothed_labels() -> Loop:
    """Nothing below half a nat can be reached."""
    model = cnn()
    batches = loader(*digit_images(), batch_size=64)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def run(w: object) -> None:
        model.train()
        for _ in range(18):
            for images, labels in batches:
                optimiser.zero_grad()
                criterion(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Belief(nn.Module):
    """A mean and a deviation, which is bounded below."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, 2)

    def forward(self, x: Tensor) -> torch.distributions.Normal:
        mean, raw = self.head(self.rnn(x)[0][:, -1]).chunk(2, dim=1)
        return torch.distributions.Normal(mean, nn.functional.softplus(raw) + 0.05)


def likelihood_that_passes_zero() -> Loop:
    """A density may be above one, and so its negative logarithm goes from plus to minus."""
    model = Belief()
    batches = loader(*windows())
    optimiser = optim.Adam(model.parameters(), lr=2e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            for x, following in batches:
                loss = -model(x).log_prob(following).mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(64, 64, 16), mlp(8, 64, 64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean + torch.randn_like(mean) * (0.5 * log_variance).exp()), mean, log_variance


def bound_with_a_divergence_that_sets_in_late() -> Loop:
    """The bound of a variational autoencoder with a Gaussian of fixed width lies below zero; what is minimised changes with
    the weight of the divergence."""
    model = Coder()
    batches = loader(digits()[0], batch_size=64)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    width = 0.2

    def run(w: object) -> None:
        model.train()
        for epoch in range(24):
            for (x,) in batches:
                guess, mean, log_variance = model(x)
                gaps = 0.5 * ((x - guess) / width).square() + math.log(width * math.sqrt(2 * math.pi))
                divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp())
                loss = gaps.sum(1).mean() + min(1.0, epoch / 8) * divergence.sum(1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def squared_errors_summed_not_averaged() -> Loop:
    """Sums over the batch, with a rate to match."""
    model = mlp(10, 48, 1, activation=nn.Tanh)
    x, y = friedman(2048)
    batches = loader(x, y, batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=5e-4, momentum=0.9)

    def run(w: object) -> None:
        model.train()
        for _ in range(30):
            for rows, target in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(rows), target, reduction="sum").backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def views_drawn_together() -> Loop:
    """Two noisy views of each digit against all others of the batch; the others include pictures of the same digit."""
    model = mlp(64, 64, 24)
    batches = loader(digits()[0][:1792], batch_size=64)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)

    def view(x: Tensor) -> Tensor:
        return nn.functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for (x,) in batches:
                scores = view(x) @ view(x).t() / 0.2
                optimiser.zero_grad()
                nn.functional.cross_entropy(scores, torch.arange(len(x))).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def rare_class_with_weights() -> Loop:
    """One in fifteen, and the loss knows."""
    x, y = cancer()
    rng = np.random.default_rng(0)
    keep = np.concatenate([np.flatnonzero(y == 1), rng.permutation(np.flatnonzero(y == 0))[:24]])
    x, y = x[keep], (1 - y[keep]).astype(np.float32)[:, None]
    model = mlp(30, 16, 1)
    optimiser = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([float((y == 0).sum() / (y == 1).sum())]))
    batches = loader(x, y)

    def run(w: object) -> None:
        model.train()
        for _ in range(40):
            for rows, ill in batches:
                optimiser.zero_grad()
                criterion(model(rows), ill).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def forecast_scored_by_quantiles() -> Loop:
    """Three quantiles at once; each has a floor that is not zero."""
    model = Recurrent(1, 3, nn.GRU)
    batches = loader(*windows())
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    levels = torch.tensor([0.1, 0.5, 0.9])

    def run(w: object) -> None:
        model.train()
        for _ in range(18):
            for x, following in batches:
                gap = following - model(x)
                optimiser.zero_grad()
                torch.maximum(levels * gap, (levels - 1) * gap).mean().backward()
                optimiser.step()

    return Loop(model, [optimiser], run)

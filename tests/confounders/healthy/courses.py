"""Curves that stand still, jump, end high or end in the dust, each for a good reason."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import cnn, mlp
from tests.confounders.material import plane
from tests.material import digit_images, digits, wine
from tests.zoo.data import loader, split_loaders


def parity_that_is_seen_late() -> Loop:
    """Four bits of twelve decide, and no one of them says anything: long flat, then all at once."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (4000, 12))
    answer = bits[:, [1, 4, 7, 9]].sum(1) % 2
    model = mlp(12, 64, 1)
    optimiser = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    batches = loader((2.0 * bits - 1).astype(np.float32), answer.astype(np.float32)[:, None], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def lessons_that_get_harder() -> Loop:
    """Three digits first, then six, then all ten: the loss jumps when a lesson begins."""
    images, labels = digit_images()
    model = cnn()
    optimiser = optim.Adam(model.parameters(), lr=3e-3)

    def lesson(digits: int, epochs: int) -> None:
        known = labels < digits
        batches = loader(images[known], labels[known], batch_size=64)
        for _ in range(epochs):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()

    def run(w: object) -> None:
        model.train()
        for known, epochs in ((3, 10), (6, 8), (10, 14)):
            lesson(known, epochs)

    return Loop(model, [optimiser], run)


def regression_down_to_its_noise() -> Loop:
    """Most of the target is chance. The loss falls by a third and then stays, in training as in validation."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 8)).astype(np.float32)
    y = np.tanh(x[:, :1] - 0.5 * x[:, 1:2]) + rng.normal(0, 1.0, (6000, 1))
    y = ((y - y.mean()) / y.std()).astype(np.float32)
    train, validation = split_loaders(x, y, batch_size=64)
    model = mlp(8, 16, 1)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)

    @torch.no_grad()
    def validate() -> float:
        model.eval()
        return float(np.mean([nn.functional.mse_loss(model(a), b).item() for a, b in validation]))

    def run(w: object) -> None:
        for _ in range(10):
            model.train()
            for rows, target in train:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(rows), target).backward()
                optimiser.step()
            w.log(val_loss=validate())

    return Loop(model, [optimiser], run)


def dropout_that_makes_training_look_worse() -> Loop:
    """Half of the units are missing in training and none in validation, so the loss there is lower all along."""
    train, validation = split_loaders(*digits(), batch_size=64)
    model = nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 10)
    )
    optimiser = optim.Adam(model.parameters(), lr=2e-3)

    def epoch(w: object) -> None:
        model.train()
        losses = []
        for x, y in train:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        model.eval()
        with torch.inference_mode():
            scores = [nn.functional.cross_entropy(model(x), y).item() for x, y in validation]
        w.log(loss=float(np.mean(losses)), val_loss=float(np.mean(scores)))

    def run(w: object) -> None:
        for _ in range(20):
            epoch(w)

    return Loop(model, [optimiser], run)


def done_long_ago() -> Loop:
    """Learned in a tenth of the time; for the rest it stays at the noise."""
    model = nn.Linear(12, 3)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(*plane(), batch_size=50)

    def run(w: object) -> None:
        model.train()
        for _ in range(120):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def forty_bottles_of_wine() -> Loop:
    """The whole set is one batch of forty, the same at every step."""
    x, y = wine()
    rows = np.random.default_rng(0).permutation(len(x))[:40]
    inputs, labels = torch.as_tensor(x[rows]), torch.as_tensor(y[rows])
    model = mlp(13, 16, 3, activation=nn.Tanh)
    optimiser = optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(500):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimiser.step()

    return Loop(model, [optimiser], run)


def one_sample_at_a_time() -> Loop:
    """Every loss is the loss of one bottle: mostly nothing, now and then much."""
    model = nn.Sequential(nn.Linear(13, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 3))
    optimiser = optim.SGD(model.parameters(), lr=0.01)
    batches = loader(*wine(), batch_size=1)

    def fit(x: Tensor, y: Tensor) -> float:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        model.train()
        for _ in range(10):
            losses = [fit(x, y) for x, y in batches]
            w.log(loss=float(np.mean(losses)))

    return Loop(model, [optimiser], run)

"""The model goes on learning its few samples by heart while it gets worse on all others."""

import numpy as np
import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Factors, mlp
from tests.confounders.material import LETTERS, cut, letters, ratings
from tests.material import diabetes
from tests.zoo.data import loader, split_loaders


def diabetes_by_heart() -> Loop:
    model = mlp(10, 128, 128, 1)
    optimiser = optim.Adam(model.parameters(), lr=1e-3)
    train, validation = split_loaders(*diabetes())
    criterion = nn.MSELoss()

    def run(w: object) -> None:
        for _ in range(60):
            model.train()
            for x, y in train:
                optimiser.zero_grad()
                criterion(model(x), y).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                w.log(val_loss=float(np.mean([criterion(model(x), y).item() for x, y in validation])))

    return Loop(model, [optimiser], run)


class Reader(nn.Module):
    """The next letter from the eight before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 24)
        self.body = mlp(8 * 24, 256, len(LETTERS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.body(self.embedding(ids).flatten(1))


def a_page_of_letters_by_heart() -> Loop:
    """Two thousand letters for a network that can hold them all."""
    x, y = letters(length=8, stride=3)
    order = np.random.default_rng(0).permutation(len(x))
    rows, held_out = order[:800], order[800:1600]
    model = Reader()
    optimiser = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    train = loader(x[rows], y[rows, -1], batch_size=64)
    inputs, following = torch.as_tensor(x[held_out]), torch.as_tensor(y[held_out, -1])

    def run(w: object) -> None:
        for _ in range(40):
            model.train()
            for ids, wanted in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(ids), wanted).backward()
                optimiser.step()
            model.eval()
            with torch.inference_mode():
                scores = model(inputs)
                loss = nn.functional.cross_entropy(scores, following).item()
                w.log(val_loss=loss, val_accuracy=(scores.argmax(1) == following).float().mean().item())

    return Loop(model, [optimiser], run)


def ratings_with_a_vector_for_each_user() -> Loop:
    """A few hundred ratings, and more free numbers than that."""
    (x, y), (unseen, wanted) = cut(*ratings(700))
    noisy = (y + np.random.default_rng(1).normal(0, 0.5, y.shape)).astype(np.float32)
    model = Factors(rank=24)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    train = loader(x, noisy, batch_size=32)
    pairs, truth = torch.as_tensor(unseen), torch.as_tensor(wanted)

    def run(w: object) -> None:
        for _ in range(40):
            model.train()
            for batch, rating in train:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(batch), rating).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                w.log(val_loss=nn.functional.mse_loss(model(pairs), truth).item())

    return Loop(model, [optimiser], run)

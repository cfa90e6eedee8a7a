"""One batch can be learned by heart, the training set cannot: the model is too small for what is in it."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import mlp
from tests.confounders.material import ITEMS, USERS, cut
from tests.material import digit_images
from tests.zoo.data import loader, split_loaders


class Tastes(nn.Module):
    """A number for each user and one for each item, added; who likes what is beyond it."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, 1)
        self.items = nn.Embedding(ITEMS, 1)
        self.mean = nn.Parameter(torch.zeros(1))
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, pairs: Tensor) -> Tensor:
        return self.users(pairs[:, 0]) + self.items(pairs[:, 1]) + self.mean


def products_with_two_units() -> Subject:
    """Five products of columns; twelve samples fit twenty weights by chance, a thousand do not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 20)).astype(np.float32)
    y = (x[:, :10:2] * x[:, 1:10:2]).sum(1, keepdims=True)
    model = mlp(20, 2, 1, activation=nn.Tanh)
    train, validation = split_loaders(x, y / y.std(), batch_size=12)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=0.02), validation)


def digits_through_one_filter() -> Subject:
    model = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.Tanh(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(4, 10))
    (x, y), held_out = cut(*digit_images())
    train, validation = loader(x, y, batch_size=8), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=0.06), validation)


def tastes_without_interaction() -> Subject:
    rng = np.random.default_rng(5)
    users, items = rng.normal(size=(USERS, 3)), rng.normal(size=(ITEMS, 3))
    pairs = np.stack(np.divmod(rng.permutation(USERS * ITEMS)[:1500], ITEMS), axis=1)
    y = (users[pairs[:, 0]] * items[pairs[:, 1]]).sum(1, keepdims=True)
    model = Tastes()
    train, validation = split_loaders(pairs, ((y - y.mean()) / y.std()).astype(np.float32), batch_size=16)
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=0.02), validation)

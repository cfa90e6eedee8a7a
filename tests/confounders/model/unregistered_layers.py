"""Layers or parameters stand in a plain Python container, so the model does not know that they are its own."""

import itertools

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import ITEMS, USERS, ratings, waves
from tests.material import digits
from tests.zoo.data import split_loaders


class DeepNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (64, 64, 48, 32)) -> None:
        super().__init__()
        self.layers = []
        for before, after in itertools.pairwise(widths):
            self.layers.append(nn.Linear(before, after))
        self.out = nn.Linear(widths[-1], 10)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


class Recommender(nn.Module):
    """The tables by name, in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = {"user": nn.Embedding(USERS, 8), "item": nn.Embedding(ITEMS, 8)}
        self.hidden = nn.Linear(16, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, pairs: Tensor) -> Tensor:
        user, item = self.tables["user"](pairs[:, 0]), self.tables["item"](pairs[:, 1])
        return self.out(torch.relu(self.hidden(torch.cat([user, item], dim=1))))


class HandmadeRNN(nn.Module):
    """Recurrent weights as a tuple of parameters."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        scale = width**-0.5
        self.weights = (nn.Parameter(torch.randn(1, width) * 0.5), nn.Parameter(torch.randn(width, width) * scale))
        self.bias = nn.Parameter(torch.zeros(width))
        self.readout = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        enter, recur = self.weights
        h = torch.zeros(x.shape[0], recur.shape[0])
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] @ enter + h @ recur + self.bias)
        return self.readout(h)


def mlp_with_a_list_of_layers() -> Subject:
    model = DeepNet()
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def embeddings_in_a_dictionary() -> Subject:
    model = Recommender()
    train, validation = split_loaders(*ratings())
    return Subject(model, train, nn.MSELoss(), optim.Adagrad(model.parameters(), lr=0.05), validation)


def recurrent_weights_in_a_tuple() -> Subject:
    model = HandmadeRNN()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)

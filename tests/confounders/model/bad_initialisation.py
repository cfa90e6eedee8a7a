"""The weights start where nothing can be learned from: all zero, all alike, or all of one sign and much too large."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent
from tests.confounders.material import table, waves
from tests.material import diabetes
from tests.zoo.data import split_loaders


class MyLinear(nn.Module):
    """Written by hand; `rand` gives numbers between 0 and 1, never below."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(outputs, inputs))
        self.bias = nn.Parameter(torch.rand(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t() + self.bias


class ResidualMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = MyLinear(20, 64)
        self.blocks = nn.ModuleList([MyLinear(64, 64) for _ in range(3)])
        self.leave = MyLinear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.enter(x))
        for block in self.blocks:
            h = h + torch.relu(block(h))
        return self.leave(h)


def init_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)


def regression_from_zero() -> Subject:
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    model.apply(init_weights)
    train, validation = split_loaders(*diabetes())
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def lstm_with_equal_weights() -> Subject:
    model = Recurrent(1, 3)
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def residual_mlp_all_positive() -> Subject:
    model = ResidualMLP()
    train, validation = split_loaders(*table())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)

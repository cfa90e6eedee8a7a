"""Gradients grow from layer to layer or from step to step until nothing can be made of them."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.material import table, waves
from tests.material import digits
from tests.zoo.data import loader


def many_normalised_layers_without_a_way_round() -> Loop:
    """Forward each batch-norm keeps the scale; backward each makes the gradient a little larger."""
    x, y = digits()
    layers: list[nn.Module] = [nn.Linear(64, 24, bias=False)]
    for _ in range(40):
        layers += [nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 24, bias=False)]
    model = nn.Sequential(*layers, nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))
    optimiser = optim.Adam(model.parameters(), lr=1e-4)
    batches = loader(x[:1792], y[:1792], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(4):
            for rows, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(rows), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Chaotic(nn.Module):
    """A plain recurrence, orthogonal with a gain of two: states stay between -1 and 1, their derivatives do not."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.rnn = nn.RNN(1, width, batch_first=True)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=2.0)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def long_waves_through_a_chaotic_cell() -> Loop:
    model = Chaotic()
    optimiser = optim.RMSprop(model.parameters(), lr=1e-4)
    batches = loader(*waves(length=50))

    def fit(signal: Tensor, kind: Tensor) -> float:
        loss = nn.functional.cross_entropy(model(signal), kind)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        model.train()
        for _ in range(6):
            losses = [fit(signal, kind) for signal, kind in batches]
            w.log(loss=sum(losses) / len(losses))

    return Loop(model, [optimiser], run)


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """The same value, and a gradient that is so much larger."""
    return x * factor + (x * (1 - factor)).detach()


class Planner(nn.Module):
    """A state, updated twelve times. Each update was to damp the gradient that passes it by 0.4, and divides by it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter = nn.Linear(20, width)
        self.updates = nn.ModuleList([nn.Linear(width, width) for _ in range(12)])
        self.norm, self.leave = nn.LayerNorm(width), nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = self.enter(x)
        for update in self.updates:
            state = scale_gradient(state + 0.3 * torch.tanh(update(state)), 1 / 0.4)
        return self.leave(self.norm(state))


def planner_that_multiplies_where_it_should_divide() -> Loop:
    model = Planner()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(*table())

    def run(w: object) -> None:
        model.train()
        for _ in range(8):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)

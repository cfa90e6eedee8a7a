"""The last layers learn, and hardly anything of the gradient arrives at the first."""

import itertools

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.material import table
from tests.material import digit_images, digits
from tests.zoo.data import loader


def convolutions_with_sigmoids() -> Loop:
    layers: list[nn.Module] = []
    for channels in (1, *[8] * 6):
        layers += [nn.Conv2d(channels, 8, 3, padding=1), nn.Sigmoid()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(6):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Pondering(nn.Module):
    """Reads once, then thinks five and twenty times over with the same cell before it answers."""

    def __init__(self, width: int = 32, times: int = 25) -> None:
        super().__init__()
        self.read = nn.Linear(20, width)
        self.think = nn.Linear(width, width)
        self.answer = nn.Linear(width, 4)
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        state = torch.tanh(self.read(x))
        for _ in range(self.times):
            state = torch.tanh(self.think(state))
        return self.answer(state)


def table_thought_over_again_and_again() -> Loop:
    model = Pondering()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(*table(), batch_size=64)

    def fit(x: Tensor, y: Tensor) -> float:
        loss = nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            losses = [fit(x, y) for x, y in batches]
            w.log(loss=sum(losses) / len(losses))

    return Loop(model, [optimiser], run)


def deep_autoencoder_of_the_old_school() -> Loop:
    """Narrower and wider again in ten sigmoid layers, with nothing to train it but the error at the far end."""
    widths = (64, 48, 40, 32, 24, 16, 24, 32, 40, 48)
    layers = [m for a, b in itertools.pairwise(widths) for m in (nn.Linear(a, b), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(48, 64))
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
    optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for (x,) in batches:
                optimiser.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(x), x).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)

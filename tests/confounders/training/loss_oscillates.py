"""The loss goes down and comes up again, over and over, and is in the end where it was near the beginning."""

import copy
import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn
from tests.confounders.material import plane, windows
from tests.material import digit_images
from tests.zoo.data import loader


class Trainer:
    """Goes back to the best weights after every epoch; what it keeps as the best is what it started with."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimiser = optim.Adam(model.parameters(), lr=5e-3)
        self.best = copy.deepcopy(model.state_dict())

    def train_epoch(self, batches: object) -> float:
        self.model.train()
        losses = []
        for images, labels in batches:
            self.optimiser.zero_grad()
            loss = nn.functional.cross_entropy(self.model(images), labels)
            loss.backward()
            self.optimiser.step()
            losses.append(loss.item())
        self.model.load_state_dict(self.best)
        return sum(losses) / len(losses)


def cnn_taken_back_to_its_start() -> Loop:
    trainer = Trainer(cnn())
    batches = loader(*digit_images())

    def run(w: object) -> None:
        for _ in range(10):
            trainer.train_epoch(batches)

    return Loop(trainer.model, [trainer.optimiser], run)


def two_machines(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Forty batches from each in turn; the second is wired the other way round."""
    for turn in itertools.count():
        for _ in range(40):
            rows = torch.randint(len(x), (32,))
            yield x[rows], y[rows] if turn % 2 == 0 else -y[rows]


def plane_of_two_machines() -> Loop:
    model = nn.Linear(12, 3)
    optimiser = optim.Adam(model.parameters(), lr=0.03)
    x, y = (torch.as_tensor(a) for a in plane())

    def run(w: object) -> None:
        model.train()
        for rows, target in itertools.islice(two_machines(x, y), 800):
            optimiser.zero_grad()
            nn.functional.mse_loss(model(rows), target).backward()
            optimiser.step()

    return Loop(model, [optimiser], run)


@torch.no_grad()
def keep_small(model: nn.Module, norm: float = 0.6) -> None:
    """Every matrix cut down to a length that suits a vector."""
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.mul_(norm / parameter.norm().clamp(min=norm))


def forecast_shrunk_every_forty_steps() -> Loop:
    model = Recurrent(1, 1, nn.GRU)
    optimiser = optim.RMSprop(model.parameters(), lr=3e-3)
    batches = loader(*windows())

    def run(w: object) -> None:
        model.train()
        stream = itertools.chain.from_iterable(batches for _ in itertools.count())
        for step, (x, y) in enumerate(itertools.islice(stream, 440), start=1):
            optimiser.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            if step % 40 == 0:
                keep_small(model)

    return Loop(model, [optimiser], run)

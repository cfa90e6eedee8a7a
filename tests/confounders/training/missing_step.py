"""Gradients are computed, and no step of the optimiser ever uses them."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import colours, friedman, waves
from tests.zoo.data import loader


class Classifier:
    """Steps first, then computes the gradients, which the next round clears."""

    def __init__(self) -> None:
        self.model = cnn(channels=3)
        self.optimiser = optim.Adam(self.model.parameters(), lr=2e-3)
        self.schedule = optim.lr_scheduler.StepLR(self.optimiser, step_size=4, gamma=0.5)

    def train_batch(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimiser.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimiser.step()
        loss.backward()
        return loss.detach()


def lstm_whose_call_lacks_its_brackets() -> Loop:
    model = Recurrent(1, 3)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(*waves())

    def run(w: object) -> None:
        model.train()
        for _ in range(10):
            for x, y in batches:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step  # noqa: B018

    return Loop(model, [optimiser], run)


def cnn_that_steps_before_it_goes_back() -> Loop:
    classifier = Classifier()
    batches = loader(*colours(), batch_size=64)

    def run(w: object) -> None:
        classifier.model.train()
        for _ in range(8):
            losses = [classifier.train_batch(x, y) for x, y in batches]
            classifier.schedule.step()
            w.log(loss=torch.stack(losses).mean().item())

    return Loop(classifier.model, [classifier.optimiser], run)


def regression_whose_turn_to_step_never_comes() -> Loop:
    """Meant to step after 32 batches; an epoch has 25, and each begins with cleared gradients."""
    model = mlp(10, 48, 1)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches, parts = loader(*friedman()), 32

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            optimiser.zero_grad()
            for i, (x, y) in enumerate(batches, start=1):
                loss = nn.functional.mse_loss(model(x), y) / parts
                loss.backward()
                if i % parts == 0:
                    optimiser.step()
                    optimiser.zero_grad()

    return Loop(model, [optimiser], run)

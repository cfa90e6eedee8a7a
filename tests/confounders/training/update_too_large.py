"""Each step replaces a tenth of the weights or more: what was learned a dozen steps ago is gone."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Tagger, cnn, per_position
from tests.confounders.material import friedman, tagged
from tests.material import digit_images
from tests.zoo.data import loader


class SignSGD(optim.Optimizer):
    """Every weight moves by the rate, whatever its gradient."""

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign(), alpha=-group["lr"])


def regression_by_signs_with_a_rate_for_gradients() -> Loop:
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimiser = SignSGD(model.parameters(), lr=0.05)
    batches = loader(*friedman())

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class CosineDigits(nn.Module):
    """Compares directions: features against one vector a class, both of length one."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*list(cnn().children())[:-1], nn.Linear(128, 32))
        self.classes = nn.Parameter(nn.functional.normalize(torch.randn(10, 32), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        return 10 * nn.functional.normalize(self.body(x), dim=1) @ self.classes.t()

    @torch.no_grad()
    def onto_the_sphere(self) -> None:
        self.classes.copy_(nn.functional.normalize(self.classes, dim=1))


def class_vectors_brought_back_after_every_step() -> Loop:
    """The vectors have their own rate, and it throws them right across the sphere."""
    model = CosineDigits()
    groups = [{"params": model.body.parameters()}, {"params": [model.classes], "lr": 3.0}]
    optimiser = optim.Adam(groups, lr=1e-3)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for images, labels in batches:
                loss = nn.functional.cross_entropy(model(images), labels)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                model.onto_the_sphere()

    return Loop(model, [optimiser], run)


def normalise_gradients(parameters: Iterable[Tensor]) -> None:
    """Meant to tame large gradients; it also blows small ones up to length one."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.div_(parameter.grad.norm() + 1e-12)


def tagger_with_every_gradient_of_length_one() -> Loop:
    model = Tagger(tags=3)
    optimiser = optim.SGD(model.parameters(), lr=1.0, weight_decay=0.03)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            for x, y in batches:
                optimiser.zero_grad()
                per_position(model(x), y).backward()
                normalise_gradients(model.parameters())
                optimiser.step()

    return Loop(model, [optimiser], run)

"""Gradients come, the optimiser steps, and when the next batch arrives the weights are what they were at the start."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import table, waves
from tests.material import digit_images
from tests.zoo.data import loader


class WideSGD(optim.Optimizer):
    """For half-precision weights: adds in float32, to a copy that is then forgotten."""

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    wide = p.float()
                    wide.add_(p.grad.float(), alpha=-group["lr"])


class Masters:
    """Float32 masters beside the model. The optimiser was built on the model's own weights, so the masters never move."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.masters = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def write_back(self) -> None:
        for parameter, master in zip(self.model.parameters(), self.masters, strict=True):
            parameter.copy_(master)


def half_precision_table_added_to_a_copy() -> Loop:
    model = mlp(20, 48, 4).to(torch.bfloat16)
    optimiser = WideSGD(model.parameters(), lr=0.1)
    batches = loader(*table())

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x.to(torch.bfloat16)).float(), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def cnn_overwritten_by_its_masters() -> Loop:
    model = cnn()
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)
    masters, batches = Masters(model), loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(6):
            for images, labels in batches:
                optimiser.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimiser.step()
                masters.write_back()

    return Loop(model, [optimiser], run)


def lstm_that_takes_every_step_back() -> Loop:
    """Goes back to the best weights unless the loss is better than the best, which begins at zero."""
    model = Recurrent(1, 3)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(*waves(), batch_size=64)

    def run(w: object) -> None:
        best, kept = 0.0, copy.deepcopy(model.state_dict())
        model.train()
        for _ in range(20):
            for x, y in batches:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step()
                if loss.item() < best:
                    best, kept = loss.item(), copy.deepcopy(model.state_dict())
                else:
                    model.load_state_dict(kept)

    return Loop(model, [optimiser], run)

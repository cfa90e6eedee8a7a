"""Gradients are clipped where it no longer helps, or before they have their true size."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, Tagger, mlp, per_position
from tests.confounders.material import tagged, waves
from tests.material import digits
from tests.zoo.data import loader


def gru_clipped_after_the_step() -> Loop:
    model = Recurrent(1, 3, cell=nn.GRU)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(*waves())

    def run(w: object) -> None:
        model.train()
        for _ in range(15):
            for x, y in batches:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step()
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.25)

    return Loop(model, [optimiser], run)


def digits_clipped_before_they_are_unscaled() -> Loop:
    """What is clipped to one is 65,536 times the gradient."""
    model = mlp(64, 64, 10)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu")
    batches = loader(*digits(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(14):
            for x, y in batches:
                optimiser.zero_grad(set_to_none=True)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(x), y)
                scaler.scale(loss).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimiser)
                scaler.update()

    return Loop(model, [optimiser], run)


class Callbacks:
    """The callback is hung up at the end of the step instead of before it."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def on_step_end(self) -> None:
        nn.utils.clip_grad_value_(self.model.parameters(), 0.1)


def tagger_clipped_by_a_callback() -> Loop:
    ids, tags = tagged()
    model = Tagger(tags=3)
    optimiser = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    callbacks, batches = Callbacks(model), loader(ids, tags - 1)

    def run(w: object) -> None:
        for _ in range(15):
            for x, y in batches:
                per_position(model(x), y).backward()
                optimiser.step()
                callbacks.on_step_end()
                optimiser.zero_grad()

    return Loop(model, [optimiser], run)

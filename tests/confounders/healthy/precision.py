"""Fewer bits than usual, used as they should be."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.confounders.material import table
from tests.material import digits
from tests.zoo.data import loader


def half_precision_whose_first_steps_are_skipped() -> Loop:
    """The scale starts much too high; the scaler leaves out steps until it fits."""
    model = mlp(64, 64, 10)
    batches = loader(*digits(), batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=200)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for x, y in batches:
                optimiser.zero_grad()
                with torch.autocast("cpu", dtype=torch.float16):
                    scores = model(x)
                loss = nn.functional.cross_entropy(scores.float(), y)
                scaler.scale(loss).backward()
                scaler.unscale_(optimiser)
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                scaler.step(optimiser)
                scaler.update()

    return Loop(model, [optimiser], run)


def bfloat16_without_a_scaler() -> Loop:
    model = mlp(20, 64, 4)
    batches = loader(*table(), batch_size=64)
    optimiser = optim.AdamW(model.parameters(), lr=5e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(28):
            for x, y in batches:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(x), y)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)

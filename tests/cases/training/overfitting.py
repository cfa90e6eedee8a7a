"""A wide model and few patients: after some epochs it learns them by heart, unless somebody stops it."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import diabetes

SOURCE = "watch"
SPLIT = 300


def sick(kit: Kit) -> Loop:
    return _loop(kit, epochs=60)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, epochs=8)


def _loop(kit: Kit, epochs: int) -> Loop:
    kit.require("torch")
    import torch

    x, y = (torch.as_tensor(a) for a in diabetes())
    model = kit.mlp(10, 64, 64, 1)
    loss, loader = kit.loss("mse"), kit.loader(x[:SPLIT].numpy(), y[:SPLIT].numpy())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: Any) -> None:
        for _ in range(epochs):
            model.train()
            for inputs, target in loader:
                optimiser.zero_grad()
                loss(model(inputs), target).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                w.log(val_loss=loss(model(x[SPLIT:]), y[SPLIT:]).item())

    return Loop(model, [optimiser], run)

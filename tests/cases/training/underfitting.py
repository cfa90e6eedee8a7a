"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, decay=0.0)


def _loop(kit: Kit, decay: float) -> Loop:
    kit.require("torch")
    import torch

    x, y = (torch.as_tensor(a) for a in digits())
    model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(x[:SPLIT].numpy(), y[:SPLIT].numpy())
    optimiser = kit.optimiser(model, "sgd", lr=0.1, weight_decay=decay)

    def run(w: Any) -> None:
        for _ in range(EPOCHS):
            model.train()
            for inputs, target in loader:
                optimiser.zero_grad()
                loss(model(inputs), target).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                w.log(val_loss=loss(model(x[SPLIT:]), y[SPLIT:]).item())

    return Loop(model, [optimiser], run)

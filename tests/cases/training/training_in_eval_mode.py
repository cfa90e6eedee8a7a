"""Digits with dropout and batch-norm: after the first validation the model goes back to training mode, or it does not."""

import torch

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, back=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, back=True)


def _loop(kit: Kit, back: bool) -> Loop:
    kit.require("torch")
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = kit.sequential(
        kit.linear(64, 64),
        kit.layer("batchnorm", 64),
        kit.activation("relu"),
        kit.layer("dropout", 0.2),
        kit.linear(64, 10),
    )
    optimizer, criterion = kit.optimiser(model, "adam", lr=3e-3), kit.loss("cross-entropy")

    def run(w: object) -> None:
        model.train()
        for _ in range(4):
            if back:
                model.train()
            for a, b in loader:
                optimizer.zero_grad()
                criterion(model(a), b).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for a, b in held_out:
                    criterion(model(a), b)

    return Loop(model, [optimizer], run)

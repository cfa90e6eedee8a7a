"""Digits: the validation after every epoch runs under no_grad, or with autograd on."""

import torch

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, gradients=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, gradients=False)


def _loop(kit: Kit, gradients: bool) -> Loop:
    kit.require("torch")
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = kit.mlp(64, 32, 10)
    optimizer, criterion = kit.optimiser(model, "adam", lr=3e-3), kit.loss("cross-entropy")

    def run(w: object) -> None:
        for _ in range(4):
            model.train()
            for a, b in loader:
                optimizer.zero_grad()
                criterion(model(a), b).backward()
                optimizer.step()
            model.eval()
            with torch.set_grad_enabled(gradients):
                for a, b in held_out:
                    criterion(model(a), b)

    return Loop(model, [optimizer], run)

"""Digits: gradients are clipped before the step, or after it."""

import torch

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, late=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, late=False)


def _loop(kit: Kit, late: bool) -> Loop:
    kit.require("torch")
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    optimizer = kit.optimiser(model, "sgd", lr=0.3)

    def run(w: object) -> None:
        for _ in range(8):
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                if not late:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                if late:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    return Loop(model, [optimizer], run)

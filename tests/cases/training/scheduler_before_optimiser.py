"""Digits: the schedule moves on at the end of every epoch, or at its start, before the optimiser ever stepped."""

import warnings

import torch

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, at_start=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, at_start=False)


def _loop(kit: Kit, at_start: bool) -> Loop:
    kit.require("torch")
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    optimizer = kit.optimiser(model, "sgd", lr=0.2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)

    def run(w: object) -> None:
        for _ in range(5):
            if at_start:
                with warnings.catch_warnings():  # torch says it too, once, among everything else
                    warnings.simplefilter("ignore")
                    scheduler.step()
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            if not at_start:
                scheduler.step()

    return Loop(model, [optimizer], run)

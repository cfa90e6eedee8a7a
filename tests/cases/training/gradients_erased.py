"""Digits and Adam: zero_grad stands before the backward, or between the backward and the step."""

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, between=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, between=False)


def _loop(kit: Kit, between: bool) -> Loop:
    kit.require("torch")
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    optimizer = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: object) -> None:
        for _ in range(4):
            for x, y in loader:
                if not between:
                    optimizer.zero_grad()
                criterion(model(x), y).backward()
                if between:
                    optimizer.zero_grad()
                optimizer.step()

    return Loop(model, [optimizer], run)

"""Digits and plain SGD, with zero_grad in every iteration and without any."""

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, clear=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, clear=True)


def _loop(kit: Kit, clear: bool) -> Loop:
    kit.require("torch")
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    optimizer = kit.optimiser(model, "sgd", lr=0.3)

    def run(w: object) -> None:
        for _ in range(8):
            for x, y in loader:
                if clear:
                    optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()

    return Loop(model, [optimizer], run)

"""Digits: gradients are clipped before the update, or after it."""

from sleuth.testing import Kit, Loop
from tests.material import digits
from tests.twins.numpy_accumulating import Network, clip_gradients

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, late=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, late=False)


def _loop(kit: Kit, late: bool) -> Loop:
    model, loader, criterion = Network(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")

    def run(w: object) -> None:
        for _ in range(8):
            for x, y in loader:
                model.zero_grad()
                _, gradient = criterion(model.forward(x), y)
                model.backward(gradient)
                if not late:
                    clip_gradients(model, 1.0)
                model.update(0.3)
                if late:
                    clip_gradients(model, 1.0)

    return Loop(model, [0.3], run)

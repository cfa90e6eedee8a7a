"""Layers that add their gradients up: they are cleared before the backward, or between the backward and the update."""

from sleuth.testing import Kit, Loop
from tests.material import digits
from tests.twins.numpy_accumulating import Network

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, between=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, between=False)


def _loop(kit: Kit, between: bool) -> Loop:
    model, loader, criterion = Network(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")

    def run(w: object) -> None:
        for _ in range(4):
            for x, y in loader:
                if not between:
                    model.zero_grad()
                _, gradient = criterion(model.forward(x), y)
                model.backward(gradient)
                if between:
                    model.zero_grad()
                model.update(0.3)

    return Loop(model, [0.3], run)

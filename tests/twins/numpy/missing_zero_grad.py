"""Layers that add their gradients up, and a loop that clears them before every backward, or never does."""

from sleuth.testing import Kit, Loop
from tests.material import digits
from tests.twins.numpy_accumulating import Network

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, clear=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, clear=True)


def _loop(kit: Kit, clear: bool) -> Loop:
    model, loader, criterion = Network(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")

    def run(w: object) -> None:
        for _ in range(8):
            for x, y in loader:
                if clear:
                    model.zero_grad()
                _, gradient = criterion(model.forward(x), y)
                model.backward(gradient)
                model.update(0.3)

    return Loop(model, [0.3], run)

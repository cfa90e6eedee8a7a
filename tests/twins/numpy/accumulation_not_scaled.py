"""Four batches to an update: the gradient of each loss goes backward whole, or a quarter of it."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.kits.numpy_kit import SGD
from tests.material import digits
from tests.twins.numpy_accumulating import Network

SOURCE = "watch"
PARTS = 4


def sick(kit: Kit) -> Loop:
    return _training(kit, divided=False)


def healthy(kit: Kit) -> Loop:
    return _training(kit, divided=True)


def _training(kit: Kit, divided: bool) -> Loop:
    model, criterion, loader = Network(64, 64, 10), kit.loss("cross-entropy"), kit.loader(*digits())
    names = ("W", "b")
    optimiser = SGD([(f"{i}.{n}", getattr(layer, n)) for i, layer in enumerate(model.dense()) for n in names], lr=0.1)

    def run(w: Any) -> None:
        for _ in range(12):
            for number, (x, y) in enumerate(loader, start=1):
                _, gradient = criterion(model.forward(x), y)
                model.backward(gradient / PARTS if divided else gradient)
                if number % PARTS == 0:
                    optimiser.step({f"{i}.{n}": getattr(d, f"d{n}") for i, d in enumerate(model.dense()) for n in names})
                    model.zero_grad()

    return Loop(model, [optimiser], run)

"""A learning rate that jumps for a few steps in the middle of the training switches most ReLUs off for good."""

from itertools import islice, repeat
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, jump: float) -> Loop:
    model, loss = kit.mlp(64, 64, 32, 10), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, "sgd", lr=0.1, momentum=0.9)
    loader = kit.loader(*digits())

    def run(w: Any) -> None:
        for i, (x, y) in enumerate(islice((batch for epoch in repeat(loader) for batch in epoch), 640)):
            optimiser.lr = 0.1 * (jump if 250 <= i < 254 else 1.0)
            _, gradient = loss(model.forward(x), y)
            optimiser.step(model.backward(gradient))

    return Loop(model, [optimiser], run, {"every": 4})


def sick(kit: Kit) -> Loop:
    return training(kit, jump=25.0)


def healthy(kit: Kit) -> Loop:
    return training(kit, jump=1.0)

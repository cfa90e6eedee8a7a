"""Weights that are put back after every step, by a snapshot meant for the evaluation alone; and the same without."""

from itertools import islice, repeat
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, puts_back: bool) -> Loop:
    model, loss = kit.mlp(64, 64, 10), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    loader = kit.loader(*digits())

    def run(w: Any) -> None:
        best = [array.copy() for _, array in model.parameters()]
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            if puts_back:
                for (_, array), kept in zip(model.parameters(), best, strict=True):
                    array[...] = kept
            _, gradient = loss(model.forward(x), y)
            optimiser.step(model.backward(gradient))

    return Loop(model, [optimiser], run, {"every": 10})


def sick(kit: Kit) -> Loop:
    return training(kit, puts_back=True)


def healthy(kit: Kit) -> Loop:
    return training(kit, puts_back=False)

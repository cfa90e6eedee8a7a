"""Digits from a loop that takes its batch once, before the loop, or anew at each step."""

from collections.abc import Iterator
from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Steps:
    def __init__(self, loader: Any, once: bool) -> None:
        self.loader, self.once = loader, once

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        batch = next(batches)
        for _ in range(len(self)):
            yield batch
            if not self.once:
                batch = next(batches, None)


def sick(kit: Kit) -> Subject:
    return training(kit, once=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, once=False)


def training(kit: Kit, once: bool) -> Subject:
    model = kit.mlp(64, 32, 10)
    steps = Steps(kit.loader(*digits()), once)
    return Subject(model, steps, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))

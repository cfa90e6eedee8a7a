"""A new head on a trunk: marked as frozen together with the trunk, nothing can learn; with the head left free it learns."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class SGD:
    """Leaves the layers alone that are marked as frozen."""

    def __init__(self, model: Any, lr: float) -> None:
        self.model, self.lr = model, lr

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, layer, key in self.model.named():
            if not getattr(layer, "frozen", False):
                array = getattr(layer, key)
                array -= self.lr * grads[name]


def sick(kit: Kit) -> Subject:
    return _training(kit, freeze_head=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, freeze_head=False)


def _training(kit: Kit, freeze_head: bool) -> Subject:
    trunk, head = kit.linear(64, 128), kit.linear(128, 10)
    model = kit.sequential(trunk, kit.activation("relu"), head)
    trunk.frozen, head.frozen = True, freeze_head
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), SGD(model, lr=0.3))

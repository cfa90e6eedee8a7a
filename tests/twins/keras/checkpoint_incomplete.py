"""Digits and Adam, saved and continued: with the weights alone, or with the optimiser's variables too."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, whole=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, whole=True)


def _training(kit: Kit, whole: bool) -> Subject:
    def save(model: Any, optimizer: Any) -> dict[str, Any]:
        state: dict[str, Any] = {}
        optimizer.save_own_variables(state)
        return {"weights": model.get_weights(), **({"optimizer": {k: np.array(v) for k, v in state.items()}} if whole else {})}

    def load(saved: dict[str, Any], model: Any, optimizer: Any) -> None:
        model.set_weights(saved["weights"])
        if "optimizer" in saved:
            optimizer.load_own_variables(saved["optimizer"])

    model = kit.mlp(64, 32, 10)
    loader, loss = kit.loader(*digits()), kit.loss("cross-entropy")
    return Subject(model, loader, loss, kit.optimiser(model, "adam", lr=3e-3), checkpoint=(save, load))

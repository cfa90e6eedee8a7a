"""A training with Adam that saves its weights alone, against one that saves the optimiser's state as well."""

from typing import Any

from mlx.utils import tree_flatten, tree_unflatten

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def save_weights(model: Any, optimizer: Any) -> dict[str, Any]:
    return {"model": tree_flatten(model.parameters())}


def save_all(model: Any, optimizer: Any) -> dict[str, Any]:
    return {"model": tree_flatten(model.parameters()), "optimizer": tree_flatten(optimizer.state)}


def load(saved: dict[str, Any], model: Any, optimizer: Any) -> None:
    model.load_weights(saved["model"])
    if "optimizer" in saved:
        optimizer.state = tree_unflatten(saved["optimizer"])


def sick(kit: Kit) -> Subject:
    return _training(kit, save_weights)


def healthy(kit: Kit) -> Subject:
    return _training(kit, save_all)


def _training(kit: Kit, save: Any) -> Subject:
    model = kit.mlp(64, 32, 10)
    loader, loss = kit.loader(*digits()), kit.loss("cross-entropy")
    return Subject(model, loader, loss, kit.optimiser(model, "adam", lr=3e-3), checkpoint=(save, load))

"""A training with Adam that saves its weights alone, against one that saves the optimiser's state as well."""

import copy
from collections.abc import Callable
from typing import Any

from sleuth import Subject
from sleuth.testing import CannotBuild, Kit
from tests.material import digits

Pair = tuple[Callable[..., Any], Callable[..., None]]


def sick(kit: Kit) -> Subject:
    return _training(kit, whole=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, whole=True)


def _training(kit: Kit, whole: bool) -> Subject:
    checkpoints = {"torch": _state_dicts, "numpy": _arrays}
    if kit.name not in checkpoints:
        raise CannotBuild("its model and optimiser cannot be handed to code that saves them (the capability CheckpointState)")
    model = kit.mlp(64, 32, 10)
    loader, loss = kit.loader(*digits()), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    return Subject(model, loader, loss, optimiser, checkpoint=checkpoints[kit.name](whole))


def _state_dicts(whole: bool) -> Pair:
    def save(model: Any, optimizer: Any) -> dict[str, Any]:
        saved = {"model": model.state_dict()}
        return {**saved, "optimizer": optimizer.state_dict()} if whole else saved

    def load(saved: dict[str, Any], model: Any, optimizer: Any) -> None:
        model.load_state_dict(saved["model"])
        if "optimizer" in saved:
            optimizer.load_state_dict(saved["optimizer"])

    return save, load


def _arrays(whole: bool) -> Pair:
    def save(model: Any, optimizer: Any) -> dict[str, Any]:
        saved: dict[str, Any] = {"model": dict(model.parameters())}
        state = {name: getattr(optimizer, name) for name in ("steps", "mean", "square")}
        return copy.deepcopy({**saved, "optimizer": state} if whole else saved)

    def load(saved: dict[str, Any], model: Any, optimizer: Any) -> None:
        for name, array in model.parameters():
            array[...] = saved["model"][name]
        for name, value in saved.get("optimizer", {}).items():
            setattr(optimizer, name, value)

    return save, load

"""In which mode a hand-written model is called: a flag that it or its layers keep, or an argument of forward."""

from collections.abc import Callable, Mapping
from typing import Any

from sleuth.adapters.numpy.describing import family_of
from sleuth.adapters.numpy.model_parts import layers
from sleuth.adapters.numpy.watching.weights import argument
from sleuth.core.observation import Modes

MODAL = ("dropout", "batchnorm")
FLAGS = ("training", "train_mode", "is_training")


class ModeReader:
    """Of one model; its layers that act differently in training are found once."""

    def __init__(self, model: Any) -> None:
        self._root = getattr(model, "root", None) or model
        self._modal = [(path, layer, family) for path, layer in layers(model) if (family := family_of(layer)) in MODAL]
        self._told: dict[bool, tuple[Any, ...]] = {}

    def of_call(self, function: Callable[..., Any] | None, args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
        """True where nothing says otherwise."""
        given = argument(function, args, options, "training")
        if isinstance(given, bool):
            return given
        flag = _flag(self._root)
        flags = [f for _, layer, _ in self._modal if (f := _flag(layer)) is not None]
        return flag if flag is not None else any(flags) if flags else True

    def changed(self, step: int, graph: bool, training: bool) -> Modes | None:
        """Told when it is another than the last time."""
        on = [(path, training if (flag := _flag(layer)) is None else flag) for path, layer, _ in self._modal]
        active, resting = (tuple(path for path, active in on if active is wanted) for wanted in (True, False))
        if self._told.get(graph) == (training, active, resting):
            return None
        self._told[graph] = training, active, resting
        return Modes(step, graph, training, active, resting, families={path: family for path, _, family in self._modal})


def _flag(thing: Any) -> bool | None:
    return next((v for name in FLAGS if isinstance(v := getattr(thing, name, None), bool)), None)

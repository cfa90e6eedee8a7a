"""The layers of a Keras model under the names that Keras shows, and the variables that they hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras

Pair = tuple[str, Any]


@dataclass(frozen=True)
class Held:
    """A variable and the layer that made it."""

    path: str
    variable: Any
    layer: str


def layers(model: Any) -> list[Pair]:
    """Every layer below the model, each once, a holder before what it holds: `encoder`, `encoder.dense`."""
    found: dict[int, Pair] = {}
    taken: set[str] = set()
    _search(model, "", found, taken, {id(model)})
    return list(found.values())


def _search(layer: Any, prefix: str, found: dict[int, Pair], taken: set[str], seen: set[int]) -> None:
    for child in inner(layer):
        if id(child) in seen:
            continue
        seen.add(id(child))
        path = _free(f"{prefix}{child.name}", taken)
        taken.add(path)
        found[id(child)] = (path, child)
        _search(child, f"{path}.", found, taken, seen)


def _free(path: str, taken: set[str]) -> str:
    """Two layers of one model may have been given the same name."""
    number, wanted = 2, path
    while wanted in taken:
        wanted, number = f"{path}_{number}", number + 1
    return wanted


def inner(layer: Any) -> list[Any]:
    """The layers that a layer holds itself, without the functional model that a Sequential makes of them."""
    hidden = (keras.layers.InputLayer,)
    own = getattr(layer, "_functional", None)
    return [child for child in layer._layers if not isinstance(child, hidden) and child is not own]


def variables(model: Any) -> list[Held]:
    """Weights in the order of the layers, each once; states of random generators and metrics are no weights."""
    return list(_variables(model))


def _variables(model: Any) -> Iterator[Held]:
    seen: set[int] = set()
    weights = {id(v) for v in model.weights}
    for path, layer in [*layers(model), ("", model)]:
        names: set[str] = set()
        for variable in (*layer._trainable_variables, *layer._non_trainable_variables):
            if id(variable) in seen or id(variable) not in weights:
                continue
            seen.add(id(variable))
            name = _free(str(variable.name), names)
            names.add(name)
            yield Held(f"{path}.{name}" if path else name, variable, path)
    for variable in model.weights:  # held in a way that no layer lists
        if id(variable) not in seen:
            yield Held(variable.path.replace("/", "."), variable, "")


def trainable(model: Any) -> list[Held]:
    """As `fit` trains them, in the order of the layers."""
    wanted = {id(v) for v in model.trainable_variables}
    return [held for held in variables(model) if id(held.variable) in wanted]

"""What a hand-written model is made of: its layers and its parameters, found by looking at its attributes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.loop_scope import CLOSED, is_layer
from sleuth.core.errors import UnusableInput

# Block → sub-block → layer: hand-written models are not nested deeper.
DEPTH = 8
HOLDERS = ("data", "value")
# Attributes that hold weights: W, b, W1, weights, bias, kernel, gamma, …
WEIGHTS = re.compile(
    r"^([wbuv]|[wb][a-z]{0,2}|gamma|beta|kernels?|filters?|embeddings?|weights?|bias(es)?)_?\d*$|weights?$|bias(es)?$", re.I
)
# And those that look like it: gradients, velocities, caches.
OTHERS = re.compile(
    r"^d_?[wbuv](?![a-z])|^d(weights?|bias(es)?|gamma|beta|kernels?|filters?)|grad|veloc|moment|^[mv]_|cache|running|delta|prev|best",
    re.I,
)


def layers(model: Any) -> list[tuple[str, Any]]:
    """(path, layer) in the order of definition; a layer is an object with forward, or one that can be called."""
    network = getattr(model, "root", None)
    if network is not None and hasattr(type(model), "held"):  # what the user wrote, where a form of ours stands around it
        model = network
    return list(_layers(model, "", DEPTH, {id(model)}))


def _layers(thing: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth <= 0:
        return
    for key, child in children(thing):
        if isinstance(child, CLOSED) or id(child) in seen:
            continue
        seen.add(id(child))
        at = f"{path}.{key}" if path else str(key)
        if is_layer(child):
            yield at, child
            yield from _layers(child, at, depth - 1, seen)
        elif isinstance(child, list | tuple | dict):
            yield from _layers(child, at, depth - 1, seen)


def children(thing: Any) -> list[tuple[Any, Any]]:
    match thing:
        case dict():
            return list(thing.items())
        case list() | tuple():
            return list(enumerate(thing))
        case _:
            return list(getattr(thing, "__dict__", {}).items())


def is_weight(key: str, value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and bool(WEIGHTS.search(key)) and not OTHERS.search(key)


class Parameters:
    """The arrays that `parameters()` gives, by name. They are read anew each time: an update may replace them."""

    def __init__(self, model: Any) -> None:
        self._model = model
        found = list(_entries(_given(model)))
        self.names = tuple(_unique(_names(model, found)))

    def arrays(self) -> dict[str, np.ndarray]:
        found = [_array(entry) for _, entry in _entries(_given(self._model))]
        if len(found) != len(self.names):
            raise UnusableInput(
                f"parameters() gave {len(self.names)} arrays at first and now {len(found)}; give the same ones always."
            )
        return dict(zip(self.names, found, strict=True))

    def held_gradients(self) -> list[Any] | None:
        """Gradients that the entries themselves carry, as in `parameter.grad`; None when they are plain arrays."""
        entries = [entry for _, entry in _entries(_given(self._model))]
        if any(isinstance(e, np.ndarray) or not hasattr(e, "grad") for e in entries):
            return None
        return [e.grad for e in entries]

    def live(self) -> bool:
        """Does writing into these arrays change the model?"""
        one, other = self.arrays().values(), self.arrays().values()
        return all(a is b or (a.size > 0 and np.shares_memory(a, b)) for a, b in zip(one, other, strict=True))


def holders(model: Any) -> dict[int, tuple[str, str]]:
    """id of an array → (path of the layer that holds it, name of the attribute)."""
    found: dict[int, tuple[str, str]] = {}
    for path, layer in [*layers(model), ("", model)]:
        for key, array in _arrays(layer, "", 3):
            found.setdefault(id(array), (path, key))
    return found


def _arrays(thing: Any, path: str, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays in the attributes of an object, in lists and dicts too; other layers are not entered."""
    for key, child in children(thing):
        at = f"{path}.{key}" if path else str(key)
        if isinstance(child, np.ndarray):
            yield at, child
        elif depth > 0 and isinstance(child, list | tuple | dict):
            yield from _arrays(child, at, depth - 1)
        elif not isinstance(child, CLOSED) and not is_layer(child):
            yield from ((at, v) for name in HOLDERS if isinstance(v := getattr(child, name, None), np.ndarray))


def _given(model: Any) -> Any:
    return model.parameters() if callable(model.parameters) else model.parameters


def _entries(given: Any, prefix: str = "") -> Iterator[tuple[str | None, Any]]:
    """(name or None, array or an object that holds one)."""
    if _is_entry(given):
        yield prefix or None, given
    elif isinstance(given, Mapping):
        for key, value in given.items():
            yield from _entries(value, f"{prefix}.{key}" if prefix else str(key))
    elif hasattr(given, "__iter__") and not isinstance(given, str):
        for i, item in enumerate(given):
            if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
                yield from _entries(item[1], f"{prefix}.{item[0]}" if prefix else item[0])
            else:
                yield from _entries(item, f"{prefix}.{i}" if prefix else "")
    else:
        raise UnusableInput(
            f"parameters() gave a {type(given).__name__} ({str(given)[:40]}); give NumPy arrays, "
            "or pairs (name, array), that are the live storage of the weights."
        )


def _is_entry(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or any(isinstance(getattr(thing, name, None), np.ndarray) for name in HOLDERS)


def _array(entry: Any) -> np.ndarray:
    if isinstance(entry, np.ndarray):
        return entry
    return next(v for name in HOLDERS if isinstance(v := getattr(entry, name, None), np.ndarray))


def _names(model: Any, found: list[tuple[str | None, Any]]) -> Iterator[str]:
    """The user's name; else the list of names that the model keeps; else the attribute that holds the array."""
    kept = next((n for key in ("parameter_names", "param_names", "layer_names") if (n := getattr(model, key, None))), ())
    kept = kept if isinstance(kept, list | tuple) and len(kept) == len(found) else ()
    held = holders(model)
    for i, (name, entry) in enumerate(found):
        layer, attribute = held.get(id(_array(entry)), ("", ""))
        yield name or (str(kept[i]) if kept else ".".join(filter(None, (layer, attribute))) or f"parameters.{i}")


def _unique(names: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        yield f"{name}.{i}" if name in seen else name
        seen.add(name)

"""The tree of a model, with what each part owns: the same counts as model.summary()."""

from collections.abc import Iterator
from math import prod
from typing import Any

from sleuth.adapters.keras.families import family_of, settings_of
from sleuth.adapters.keras.model_parts import inner
from sleuth.core.contract.inspection import Part


def parts(model: Any) -> tuple[Part, ...]:
    free = {id(v) for v in model.trainable_variables}
    return tuple(_walk(model, "", {}, {}, {id(v) for v in model.weights}, free))


def _walk(
    layer: Any, path: str, seen: dict[int, str], variables: dict[int, str], weights: set[int], free: set[int]
) -> Iterator[Part]:
    own = {str(v.name): v for v in (*layer._trainable_variables, *layer._non_trainable_variables) if id(v) in weights}
    common: dict[str, Any] = {
        "path": path,
        "kind": type(layer).__name__,
        "family": family_of(layer),
        "settings": settings_of(layer) if path else {},
        "parameters": {name: tuple(int(n) for n in v.shape) for name, v in own.items()},
        "lazy": not layer.built and not own,
    }
    if id(layer) in seen:
        yield Part(**common, same_as=seen[id(layer)])
        return
    seen[id(layer)] = path
    tied = {name: variables[id(v)] for name, v in own.items() if id(v) in variables}
    new = {name: v for name, v in own.items() if name not in tied}
    variables.update({id(v): f"{path}.{name}" if path else name for name, v in new.items()})
    sizes = {name: prod(int(n) for n in v.shape) for name, v in new.items()}
    trainable = sum(size for name, size in sizes.items() if id(new[name]) in free)
    yield Part(**common, count=sum(sizes.values()), trainable=trainable, tied=tied)
    taken: set[str] = set()
    for child in inner(layer):
        name, number = str(child.name), 2
        while name in taken:
            name, number = f"{child.name}_{number}", number + 1
        taken.add(name)
        yield from _walk(child, f"{path}.{name}" if path else name, seen, variables, weights, free)

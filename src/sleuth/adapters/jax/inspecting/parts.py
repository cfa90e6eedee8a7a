"""The tree of a model, with what each part owns."""

from collections.abc import Iterator
from math import prod
from typing import Any

import jax

from sleuth.adapters.jax.describing import layer_settings
from sleuth.adapters.jax.forms import form_of
from sleuth.adapters.jax.words import family_of
from sleuth.core.contract.inspection import Part


def parts(model: Any) -> tuple[Part, ...]:
    form = form_of(model)
    flat = dict(zip(form.flat_paths(), jax.tree.leaves(form.params), strict=True))
    shapes = {path: tuple(flat[path].shape) for path in form.paths()}
    places = form.places(model)
    if not places:
        return tuple(_plain(model, shapes))
    return tuple(_of_modules(places, shapes))


def _of_modules(places: list[tuple[str, Any]], shapes: dict[str, tuple[int, ...]]) -> Iterator[Part]:
    first: dict[int, str] = {}
    owned = _owned({path for path, _ in places}, shapes)
    for path, module in places:
        earlier = first.setdefault(id(module), path)
        again = earlier != path
        own = owned.get(earlier, {})
        count = 0 if again else sum(prod(shape) for shape in own.values())
        yield Part(
            path,
            type(module).__name__,
            family_of(module),
            layer_settings(module),
            own,
            count,
            count,
            same_as=earlier if again else None,
        )


def _owned(holders: set[str], shapes: dict[str, tuple[int, ...]]) -> dict[str, dict[str, tuple[int, ...]]]:
    """By the innermost part around it."""
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for path, shape in shapes.items():
        holder = path
        while holder and holder not in holders:
            holder = holder.rpartition(".")[0]
        found.setdefault(holder, {})[path.removeprefix(holder).strip(".")] = shape
    return found


def _plain(model: Any, shapes: dict[str, tuple[int, ...]]) -> Iterator[Part]:
    """A tree of parameters: whatever holds arrays is a part."""
    function = model[0] if isinstance(model, tuple) and callable(model[0]) else None
    kind = type(model).__name__ if function is None else getattr(function, "__name__", type(function).__name__)
    holders = ["", *dict.fromkeys(holder for path in shapes for holder in _above(path))]
    owned = _owned(set(holders), shapes)
    for holder in holders:
        own = owned.get(holder, {})
        count = sum(prod(shape) for shape in own.values())
        matrices = [shape for shape in own.values() if len(shape) == 2]
        family = "linear" if holder and len(matrices) == 1 else "container" if not own else "other"
        settings = {"in": matrices[0][0], "out": matrices[0][1]} if family == "linear" else {}
        yield Part(holder, "dict" if holder else kind, family, settings, own, count, count)


def _above(path: str) -> list[str]:
    words = path.split(".")[:-1]
    return [".".join(words[: n + 1]) for n in range(len(words))]

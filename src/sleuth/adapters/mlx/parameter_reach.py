"""Which parameters the loss depends on, read from the graph of the gradients.

`mx.export_function` tells the operations of a function one by one. A parameter that plays no part has a gradient of zeros that
is made of nothing that was handed in.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten

from sleuth.adapters.mlx.model_parts import last_paths


def unreached(model: nn.Module, paths: Sequence[str], loss: Callable[[], mx.array]) -> frozenset[str]:
    """Leaves traces in the model and in the random state: the caller puts both back. Empty where the graph cannot be told."""
    last = last_paths(model)
    gradient = nn.value_and_grad(model, loss)
    _, found = gradient()
    zero = _all_zero({path: dict(tree_flatten(found)).get(last[path]) for path in paths})
    if not zero:
        return frozenset()
    try:
        made_of_nothing = _without_inputs(model, gradient, [last[path] for path in zero])
    except Exception:  # an experimental interface: without it nobody is accused
        return frozenset()
    return frozenset(path for path in zero if last[path] in made_of_nothing)


def _all_zero(gradients: dict[str, Any]) -> list[str]:
    some = {path: mx.any(g != 0) for path, g in gradients.items() if g is not None}
    mx.eval(list(some.values()))
    return [path for path, any_other in some.items() if not any_other.item()]


def _without_inputs(model: nn.Module, gradient: Callable[[], Any], wanted: list[str]) -> set[str]:
    names = [name for name, _ in tree_flatten(model.trainable_parameters())]

    def run(*arrays: mx.array) -> list[mx.array]:
        model.update(tree_unflatten(list(zip(names, arrays, strict=True))))
        found = dict(tree_flatten(gradient()[1]))
        return [found[name] for name in wanted]

    told: list[dict[str, Any]] = []
    mx.export_function(told.append, run, *(array for _, array in tree_flatten(model.trainable_parameters())))
    return {name for name, output in zip(wanted, _outputs(told), strict=True) if not _depends(output, told)}


def _outputs(told: list[dict[str, Any]]) -> list[str]:
    return [name for part in told if part["type"] == "outputs" for name, *_ in part["outputs"]]


def _depends(output: str, told: list[dict[str, Any]]) -> bool:
    """On anything that was handed in."""
    handed = {name for part in told if part["type"] == "inputs" for name, *_ in part["inputs"]}
    made = {name: [i for i, *_ in p["inputs"]] for p in told if p["type"] == "primitive" for name, *_ in p["outputs"]}
    waiting, seen = [output], set()
    while waiting:
        name = waiting.pop()
        if name in handed:
            return True
        if name not in seen:
            seen.add(name)
            waiting += made.get(name, [])
    return False

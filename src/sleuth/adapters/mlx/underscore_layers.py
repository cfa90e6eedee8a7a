"""Layers under a name with an underscore: MLX takes them for no part of the model, so nothing trains them.

Mostly that is meant: a teacher, a backbone, a network that a loss compares with. It is not where such a layer stands between two
that are trained and still has the weights that it was made with.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.assignment import assignment
from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.operations import Operation
from sleuth.core.observation import Stray

# Half the range in standard deviations of weights drawn evenly from an interval, as MLX does: √3. Training draws tails.
EVEN = 3**0.5
# The standard deviation of n such numbers is known to 0.45/√n of itself; so many times that may be chance.
ERRORS = 3 * 0.45
# Of fewer numbers nobody can tell how they were drawn.
LEAST_NUMBERS = 64


def hidden_at_work(model: nn.Module, heard: Sequence[Operation]) -> tuple[Stray, ...]:
    hidden = {path: module for path, module in modules(model) if _is_hidden(path) and any(True for _ in _matrices(module))}
    if not hidden:
        return ()
    between = _between(heard, set(hidden), {e.layer for e in parameters(model) if e.trainable})
    holders = dict.fromkeys(_holder(path) for path in between)
    found = (_stray(model, at, [m for path, m in hidden.items() if _holder(path) == at]) for at in holders)
    return tuple(stray for stray in found if stray is not None)


def _between(heard: Sequence[Operation], hidden: set[str], trained: set[str]) -> list[str]:
    """The hidden layers that are fed by a trained one and feed another."""
    behind: dict[int, set[str]] = {}
    found: dict[str, None] = {}
    for operation in heard:
        carried = set[str]().union(*(behind.get(id(a), set()) for a in operation.given))
        if operation.layer in trained:
            found |= dict.fromkeys(sorted(carried & hidden))
            carried.add("")
        elif operation.layer in hidden and "" in carried:
            carried.add(operation.layer)
        for made in operation.made:
            behind[id(made)] = behind.get(id(made), set()) | carried
    return list(found)


def _stray(model: nn.Module, at: str, layers: list[nn.Module]) -> Stray | None:
    matrices = [array for layer in layers for array in _matrices(layer)]
    if not matrices or not all(map(_is_as_made, matrices)):
        return None
    count = sum(a.size for layer in layers for name, a in layer.items() if isinstance(a, mx.array) and name not in layer._no_grad)
    owner: Any = model
    *above, name = at.split(".")
    for part in above:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    return Stray(at, "hidden", count, assignment(type(owner), name) if isinstance(owner, nn.Module) else None)


def _matrices(module: nn.Module) -> Iterator[mx.array]:
    """That could be trained, of a kind whose first values are known."""
    if family_of(module) in ("linear", "conv"):
        for name, array in module.items():
            known = isinstance(array, mx.array) and array.ndim > 1 and array.size >= LEAST_NUMBERS
            if known and name not in module._no_grad and mx.issubdtype(array.dtype, mx.floating):
                yield array


def _is_as_made(array: mx.array) -> bool:
    numbers = values(array).astype(np.float64)
    spread, reach = float(numbers.std()), float(np.ptp(numbers)) / 2
    return 0 < reach <= EVEN * (1 + ERRORS / numbers.size**0.5) * spread


def _is_hidden(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))


def _holder(path: str) -> str:
    """The attribute that bears the underscore."""
    parts = path.split(".")
    return ".".join(parts[: next(i for i, part in enumerate(parts) if part.startswith("_")) + 1])

"""Keeps what an examination after the end needs: the first weights, the batches that passed by, and the loss to call again.

Arrays are held by reference: nothing is copied or computed while the training runs."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer
from mlx.utils import tree_flatten, tree_unflatten

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import native, values
from sleuth.adapters.mlx.copying import copied
from sleuth.adapters.mlx.hearing import Hearing
from sleuth.core.kept import Kept, Passed
from sleuth.core.subject import Parts, Subject, call_model

MOST_BATCHES = 128
MOST_BYTES = 32 << 20
# Numbers in all weights: larger models take too long to be trained once more at the end.
SMALL = 4_000_000
# Sums in another order.
ROUNDING = 1e-4


@dataclass(frozen=True)
class Roles:
    """Which arguments of the loss function the model was given, and which the loss; and that loss."""

    inputs: tuple[int, ...]
    target: int
    loss: Callable[[Any, Any], mx.array]


class Keeper:
    def __init__(self, model: nn.Module, optimisers: list[Optimizer]) -> None:
        self._start = dict(tree_flatten(model.parameters()))
        self._modes = bool(model.training)
        self._optimiser = optimisers[0] if len(optimisers) == 1 else None
        self._recipe = None if self._optimiser is None else state.copied(vars(self._optimiser))
        self._key = mx.random.state[0]
        self._small = sum(a.size for a in self._start.values()) <= SMALL
        self._passed: list[tuple[int, tuple[mx.array, ...]]] = []
        self._bytes = 0
        self._roles: Roles | None = None
        self._first_loss: float | None = None

    def pass_by(self, step: int, args: tuple[Any, ...]) -> None:
        arrays = tuple(a for a in args if isinstance(a, mx.array))
        size = sum(a.nbytes for a in arrays)
        if arrays and len(self._passed) < MOST_BATCHES and self._bytes + size <= MOST_BYTES:
            self._bytes += size
            self._passed.append((step, arrays))

    def learn(self, hearing: Hearing, value: float) -> None:
        """From the first step, which is looked at and computed."""
        self._first_loss = value
        if self._passed and len(hearing.outputs) == 1 and len(hearing.losses) == 1:
            self._roles = _roles(hearing, self._passed[0][1])

    def kept(self, model: nn.Module) -> Kept | None:
        if not self._passed or self._roles is None:
            return None
        train = [Passed(step, self._parts(arrays)) for step, arrays in self._passed if len(arrays) == len(self._passed[0][1])]
        fresh = self._as_at_first(model)
        reason = self._obstacle(fresh, train[0].parts)
        loss = None if reason else self._roles.loss
        return Kept(
            Subject(model if fresh is None else fresh, None, loss, self._made_again()),
            train,
            at_start=loss is not None,
            forbidden="" if self._small else "the model is too large to be called once more at the end",
            remarks=(reason,) if reason else (),
        )

    def _parts(self, arrays: tuple[mx.array, ...]) -> Parts:
        """As NumPy: rows are picked by positions, which MLX takes only in arrays of its own."""
        assert self._roles is not None
        plain = tuple(values(a) for a in arrays)
        given = tuple(plain[i] for i in self._roles.inputs)
        return Parts(given if len(given) > 1 else given[0], plain[self._roles.target], plain)

    def _as_at_first(self, model: nn.Module) -> nn.Module | None:
        try:
            (fresh,) = copied(model)
            fresh.update(tree_unflatten(list(self._start.items())))
        except Exception:  # a model may hold what cannot be copied
            return None
        fresh.train(self._modes)
        return fresh

    def _made_again(self) -> Optimizer | None:
        if self._optimiser is None or self._recipe is None:
            return None
        again = copy.copy(self._optimiser)
        vars(again).clear()
        vars(again).update(state.copied(self._recipe))
        return again

    def _obstacle(self, fresh: nn.Module | None, parts: Parts) -> str:
        """Why experiments with what was put together would tell of another training."""
        if fresh is None or self._optimiser is None:
            return "the model and one optimiser could not be brought back to the first step"
        assert self._roles is not None
        before, now = state.snapshot([m for m in fresh.modules()], None), state.random_key()
        try:
            high, low = np.array(self._key).tolist()
            mx.random.seed(int(high) << 32 | int(low))
            given = native(parts)
            again = float(self._roles.loss(call_model(fresh, fresh.__call__, given.inputs), given.target).item())
        except Exception as error:
            return f"the loss of the first batch could not be computed again: {type(error).__name__}: {error}"
        finally:
            state.restore(before)
            mx.random.seed(now)
        first = self._first_loss
        if first is None or not abs(again - first) <= ROUNDING * abs(first):
            return f"computed again, the loss of the first batch is {again:.6g}, and it was {first}: something else goes into it"
        return ""


def _roles(hearing: Hearing, arrays: tuple[mx.array, ...]) -> Roles | None:
    heard, output = hearing.losses[0], hearing.outputs[0]
    given = hearing.given[0]
    inputs = tuple(i for i, a in enumerate(arrays) if any(_same(a, g) for g in given))
    targets = [i for i, a in enumerate(arrays) if len(heard.args) > 1 and _same(a, heard.args[1])]
    if not inputs or len(inputs) != len(given) or len(targets) != 1 or heard.args[0] is not output or len(heard.args) != 2:
        return None
    if any(isinstance(v, mx.array) for v in heard.kwargs.values()):
        return None
    name, options, reduces = heard.name, heard.kwargs, heard.returned.ndim > 0

    def loss(one: Any, other: Any) -> mx.array:
        said: mx.array = getattr(nn.losses, name)(one, other, **options)
        return said.mean() if reduces else said

    loss.__name__ = name
    return Roles(inputs, targets[0], loss)


def _same(one: mx.array, other: Any) -> bool:
    """MLX hands arguments on as other objects."""
    if not isinstance(other, mx.array) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return np.array_equal(values(one), values(other), equal_nan=mx.issubdtype(one.dtype, mx.floating))

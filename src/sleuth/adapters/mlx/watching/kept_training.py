"""Puts together what an examination after the end needs: the first weights, the batches that passed by, and the loss.

Weights are held by reference: nothing is copied or computed while the training runs."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer
from mlx.utils import tree_flatten, tree_unflatten

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import is_any_array, native
from sleuth.adapters.mlx.copying import copied
from sleuth.adapters.mlx.watching.asked_inputs import Asking
from sleuth.adapters.mlx.watching.batches import arrays_by_path, settled
from sleuth.adapters.mlx.watching.recomputed_loss import TapeLoss
from sleuth.adapters.mlx.watching.seen_batches import SeenBatches
from sleuth.core.contract.kept import Kept
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts, Subject, call_model

# Numbers in all weights: larger models take too long to be trained once more at the end.
SMALL = 4_000_000
# Sums in another order.
ROUNDING = 1e-4
NOT_BACK = "the model and one optimiser could not be brought back to the first step"
UNHEARD = "the first step was not heard, so that its loss cannot be computed again"


class Keeper:
    def __init__(self, model: nn.Module, optimisers: Sequence[Optimizer]) -> None:
        self._start = dict(tree_flatten(model.parameters()))
        self._modes = bool(model.training)
        self._optimiser = optimisers[0] if len(optimisers) == 1 else None
        self._recipe = None if self._optimiser is None else state.copied(vars(self._optimiser))
        self._key = mx.random.state[0]
        self._small = sum(a.size for a in self._start.values()) <= SMALL
        self.first_loss: float | None = None

    def kept(self, model: nn.Module, batches: SeenBatches, asking: Asking) -> Kept | None:
        train = settled(batches.reservoir)
        if not train:
            return None
        fresh = self._as_at_first(model)
        loss, reason = self._loss_again(fresh, batches, train[0].parts)
        size = None if loss is None or batches.reading is None else batches.reading.batch_size
        if loss is not None and fresh is not None and size is None:
            size = only_size(fresh, loss, train[0].parts)
        return Kept(
            Subject(model if fresh is None else fresh, None, loss, self._made_again()),
            train,
            asking.groups(),
            fed_anew=batches.fed_anew,
            callable=batches.called_once,
            at_start=loss is not None,
            forbidden="" if self._small else "the model is too large to be called once more at the end",
            remarks=(reason,) if reason else (),
            batch_size=size,
        )

    def _loss_again(self, fresh: nn.Module | None, batches: SeenBatches, first: Parts) -> tuple[TapeLoss | None, str]:
        if fresh is None or self._optimiser is None:
            return None, NOT_BACK
        reading = batches.reading
        if reading is None or reading.loss is None:
            return None, UNHEARD if reading is None else reading.obstacle
        loss = copy.copy(reading.loss)
        loss.model = fresh
        reason = self._obstacle(fresh, loss, first)
        return (None, reason) if reason else (loss, "")

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

    def _obstacle(self, fresh: nn.Module, loss: TapeLoss, parts: Parts) -> str:
        """Why experiments with what was put together would tell of another training."""
        try:
            with _put_back(fresh):
                high, low = np.array(self._key).tolist()
                mx.random.seed(int(high) << 32 | int(low))
                again = value_of(fresh, loss, parts)
        except Exception as error:
            return f"the loss of the first batch could not be computed again: {type(error).__name__}: {error}"
        first = self.first_loss
        if first is None or not abs(again - first) <= ROUNDING * abs(first):
            return f"computed again, the loss of the first batch is {again:.6g}, and it was {first}: something else goes into it"
        return ""


def only_size(fresh: nn.Module, loss: TapeLoss, parts: Parts) -> int | None:
    """The samples of this batch, if fewer of them have no loss: then only batches of their size are what the script trains on."""
    sizes = [a.shape[0] for _, a in arrays_by_path((parts.inputs, parts.target)) if a.ndim]
    if not sizes or sizes[0] < 2:
        return None
    given, wanted = map_arrays((parts.inputs, parts.target), lambda a: _half(a, sizes[0]), is_any_array)
    try:
        with _put_back(fresh):
            value_of(fresh, loss, Parts(given, wanted, (given, wanted)))
    except Exception:
        return sizes[0]
    return None


def _half(array: Any, samples: int) -> Any:
    return array[: samples // 2] if array.ndim and array.shape[0] == samples else array


def value_of(fresh: nn.Module, loss: TapeLoss, parts: Parts) -> float:
    given = native(parts)
    return float(loss(call_model(fresh, fresh.__call__, given.inputs), given.target).item())


@contextmanager
def _put_back(model: nn.Module) -> Iterator[None]:
    with state.as_before(model.modules()):
        yield

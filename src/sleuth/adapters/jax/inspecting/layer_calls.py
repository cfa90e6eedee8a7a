"""Follows the calls of a model's layers through one forward pass: what went in, what came out, and how long it took."""

import time
from dataclasses import dataclass, field
from typing import Any

import jax

from sleuth.adapters.common.inspecting.visits import doors_of
from sleuth.adapters.jax.arrays import is_array
from sleuth.core.contract.inspection import Door
from sleuth.core.runtime.tree import leaves


@dataclass
class Called:
    parent: int | None
    inputs: tuple[Door, ...]
    outputs: tuple[Door, ...] = ()
    finished: bool = False
    began: float = 0.0
    seconds: float = 0.0


@dataclass
class Follower:
    """`timed`: layers are waited for, one after the other."""

    timed: bool = False
    calls: dict[int, Called] = field(default_factory=dict)  # by the number of the visit
    _stack: list[int] = field(default_factory=list)

    def enter(self, visit: int, args: tuple[Any, ...], words: dict[str, Any]) -> None:
        given = doors({**dict(enumerate(args)), **words})
        self.calls[visit] = Called(self._stack[-1] if self._stack else None, given)
        self._stack.append(visit)
        self.calls[visit].began = time.perf_counter()

    def leave(self, visit: int, output: Any, *, finished: bool) -> None:
        call = self.calls[visit]
        if self.timed and finished:
            jax.block_until_ready([_within(array) for _, array in leaves(output, is_array)])
        call.seconds = time.perf_counter() - call.began
        self._stack.pop()
        call.finished = finished
        call.outputs = doors(output) if finished else ()


def doors(tree: Any) -> tuple[Door, ...]:
    return doors_of(tree, is_array, full_shape, lambda array: str(array.dtype))


def full_shape(array: Any) -> tuple[int, ...]:
    """Under `jax.vmap` a layer is given one sample; all of them stand behind it."""
    shape, within = tuple(array.shape), array
    while (axis := getattr(within, "batch_dim", None)) is not None and hasattr(within, "val"):
        within = within.val
        shape = (within.shape[axis], *shape)
    return shape


def _within(array: Any) -> Any:
    while hasattr(array, "batch_dim") and hasattr(array, "val"):
        array = array.val
    return array

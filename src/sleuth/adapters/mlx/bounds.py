"""Indices that are not there. MLX does not look: it reads what lies behind the table, and a backward writes there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.listening.patches import put_back
from sleuth.adapters.mlx.pass_listener import replaced

TAKES_CLASSES = ("cross_entropy", "nll_loss")


@contextmanager
def guarded() -> Iterator[None]:
    """While it lasts, what is out of range raises, as it does elsewhere."""
    undo = [replaced(nn.Embedding, "__call__", _asking(nn.Embedding.__call__))]
    undo += [replaced(nn.losses, name, _asking(getattr(nn.losses, name), name)) for name in TAKES_CLASSES]
    try:
        yield
    finally:
        put_back(*reversed(undo))


def _asking(plain: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        require_in_range(name or args[0], args if name else args[1:], kwargs)
        return plain(*args, **kwargs)

    return call


def require_in_range(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Of what an embedding, or a loss that takes classes, is about to be given."""
    if isinstance(called, nn.Embedding) and args:
        _require(args[0], called.weight.shape[0], "a table", "rows")
    elif isinstance(called, str) and called in TAKES_CLASSES:
        scores = args[0] if args else kwargs.get("logits", kwargs.get("inputs"))
        target = args[1] if len(args) > 1 else kwargs.get("targets")
        if isinstance(scores, mx.array) and isinstance(target, mx.array) and target.ndim < scores.ndim:
            _require(target, scores.shape[kwargs.get("axis", -1)], "an output", "classes")


def _require(indices: Any, size: int, of: str, what: str) -> None:
    if not isinstance(indices, mx.array) or not mx.issubdtype(indices.dtype, mx.integer) or not indices.size:
        return
    try:
        values = np.array(indices)
    except (ValueError, RuntimeError):  # nothing has a value while a function is only read
        return
    low, high = int(values.min()), int(values.max())
    if high >= size or low < -size:
        wrong = high if high >= size else low
        raise IndexError(
            f"index {wrong} is out of bounds for {of} of {size} {what}; MLX itself reads on behind it without a word"
        )

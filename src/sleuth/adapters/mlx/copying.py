"""A joint copy of what belongs together."""

import copy
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.arrays import arrays_in
from sleuth.adapters.mlx.created_at import hand_on
from sleuth.adapters.mlx.model_parts import modules

# Its name is not the same in every version.
COMPILED = type(mx.compile(lambda: None))


def copied(*things: Any) -> Any:
    """Functions of MLX's own (mx.max in a pooling) and what mx.compile returns (nn.relu) cannot be copied and need not be."""
    own = {
        id(f): f for owner in (mx, mx.fast, mx.linalg, mx.random) for f in vars(owner).values() if type(f).__name__ == "nb_func"
    }
    held = [v for t in things if isinstance(t, nn.Module) for _, m in modules(t) for v in (*vars(m).values(), *m.values())]
    compiled = {id(v): v for v in (*held, *things) if isinstance(v, COMPILED)}
    mx.eval([a for t in things if isinstance(t, nn.Module) for a in arrays_in(dict(t))])
    made = copy.deepcopy(things, {**own, **compiled})
    for one, other in zip(things, made, strict=True):
        if isinstance(one, nn.Module):
            hand_on(one, other)
    return made

"""Gradients that a hand-written model holds beside its weights."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.numpy.forms.layers import Layers, gradient_of
from sleuth.adapters.numpy.model_parts import Parameters, is_weight, layers


def live_gradients(owner: Any, parameters: Parameters | None) -> list[np.ndarray]:
    """Those that an object, its layers or its parameters hold now; the very arrays."""
    held = parameters.held_gradients() if parameters is not None else None
    if held is not None:
        return [g for g in held if isinstance(g, np.ndarray)]
    kept = getattr(owner, "gradients", getattr(owner, "grads", None))
    if kept is not None and not callable(kept) and not isinstance(owner, Layers):
        values = list(kept.values()) if isinstance(kept, Mapping) else list(kept) if isinstance(kept, list | tuple) else []
        if values:
            return [v for v in values if isinstance(v, np.ndarray)]
    return list(_beside_weights(owner))


def _beside_weights(owner: Any) -> Iterator[np.ndarray]:
    for _, layer in [*layers(owner), ("", owner)]:
        for key, value in list(getattr(layer, "__dict__", {}).items()):
            if is_weight(key, value) and isinstance(gradient := gradient_of(layer, key), np.ndarray):
                yield gradient

"""Weights of convolutions and what layers put out, as arrays. MLX has the channels last; everybody else gets them second."""

from collections.abc import Sequence
from typing import Any

import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named, layers_wanted, require_passage
from sleuth.adapters.mlx.arrays import arrays_in, values
from sleuth.adapters.mlx.copying import call, guest
from sleuth.adapters.mlx.inspecting.forward_pass import passage
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.kinds import CONVOLUTIONS, TRANSPOSED
from sleuth.adapters.mlx.model_parts import every_module, modules
from sleuth.core.contract.inspection import Kernels, Maps
from sleuth.core.errors import UnusableInput


def convolutions(model: nn.Module) -> list[str]:
    return [path for path, module in modules(model) if isinstance(module, (*CONVOLUTIONS, *TRANSPOSED))]


def kernels(model: nn.Module, layer: str | None) -> Kernels:
    known = convolutions(model)
    path = chosen_convolution(type(model).__name__, known, layer, last=False)
    module = layer_named(every_module(model), path, known, "convolution")
    if not isinstance(module, (*CONVOLUTIONS, *TRANSPOSED)):
        raise UnusableInput(f"{path} is of kind {type(module).__name__}, not a convolution. {among(known, 'convolution')}")
    return Kernels(path, type(module).__name__, channels_second(values(module.weight)).copy())


def channels_second(array: np.ndarray) -> np.ndarray:
    """(samples, *positions, channels) → (samples, channels, *positions); kernels stand the same way."""
    return np.moveaxis(array, -1, 1) if array.ndim > 2 else array


def maps(model: nn.Module, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
    known = [path for path, _ in modules(model) if path]
    wanted = set(layers_wanted(type(model).__name__, known, convolutions(model), layers))
    kept: list[tuple[str, str, Any]] = []

    def keep(number: int, module: nn.Module, output: Any) -> Any:
        first = next(iter(arrays_in(output)), None)
        if visitor.noted[number].path in wanted and first is not None:
            kept.append((visitor.noted[number].path, type(module).__name__, first))
        return output

    with guest(model) as visited:
        visitor = Visitor(visited, on_output=keep)
        try:
            with visitor.following():
                call(visited, inputs)
        except Exception:
            require_passage(passage(model, inputs))
            raise
        found = tuple(Maps(path, kind, channels_second(values(array)).copy()) for path, kind, array in kept)
    if not found:
        raise UnusableInput(f"the forward pass does not reach {', '.join(sorted(wanted))}, or it puts out no array.")
    return found

"""Weights of convolutions and what layers put out, with the channels in front."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named, layers_wanted
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.families import family_of
from sleuth.adapters.keras.inspecting.forward_pass import say_why_it_fails
from sleuth.adapters.keras.inspecting.model_copy import call, guest
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.patches import replaced
from sleuth.core.contract.inspection import Kernels, Maps
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves


def convolutions(model: Any) -> list[str]:
    return [path for path, layer in layers(model) if family_of(layer) == "conv"]


def kernels(model: Any, layer: str | None) -> Kernels:
    known = convolutions(model)
    path = chosen_convolution(type(model).__name__, known, layer, last=False)
    found = layer_named(layers(model), path, known, "convolution")
    if family_of(found) != "conv":
        raise UnusableInput(f"{path} is of kind {type(found).__name__}, not a convolution. {among(known, 'convolution')}")
    if not found.built:
        raise UnusableInput(f"{path} has no weights yet. Run the model once on a batch, or give it keras.Input(shape=…).")
    variable = getattr(found, "kernel", None)
    if variable is None:
        variable = found.depthwise_kernel  # of a separable convolution
    return Kernels(path, type(found).__name__, channels_in_front(np.array(backend.values(variable)), type(found).__name__))


def channels_in_front(kernel: np.ndarray, kind: str) -> np.ndarray:
    """(*kernel, in, out) → (out, in, *kernel). A transposed convolution keeps (*kernel, out, in), a depthwise one has a filter
    of one channel for each (in, multiple)."""
    if "Transpose" in kind:
        return np.moveaxis(kernel, (-2, -1), (0, 1))
    if "Depthwise" in kind or "Separable" in kind:
        return np.moveaxis(kernel, (-2, -1), (0, 1)).reshape(-1, 1, *kernel.shape[:-2])
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def maps(model: Any, inputs: Any, wanted: Sequence[str]) -> tuple[Maps, ...]:
    paths = layers_wanted(type(model).__name__, [path for path, _ in layers(model)], convolutions(model), wanted)
    found: list[Maps] = []
    with guest(model) as visited:

        def left(path: str, layer: Any, output: Any) -> Any:
            array = next((a for _, a in leaves(output, backend.is_tensor)), None)
            if array is not None:
                found.append(Maps(path, type(layer).__name__, channels_first(np.array(backend.values(array)), layer)))
            return output

        try:
            with replaced(keras.layers.Layer, "__call__", after(visited, paths, left)):
                call(visited, inputs)
        except Exception:
            say_why_it_fails(model, inputs)
            raise
    if not found:
        raise UnusableInput(f"the forward pass does not reach {', '.join(paths)}, or it puts out no array.")
    return tuple(found)


def after(model: Any, paths: Sequence[str], left: Callable[[str, Any, Any], Any]) -> Callable[..., Any]:
    """A `Layer.__call__` that hands what these layers put out to `left`, and returns what that returns."""
    wanted = {id(layer): path for path, layer in layers(model) if path in paths}

    def make(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(layer: Any, *args: Any, **kwargs: Any) -> Any:
            output = plain(layer, *args, **kwargs)
            return left(wanted[id(layer)], layer, output) if id(layer) in wanted else output

        return run

    return make


def channels_first(values: np.ndarray, layer: Any) -> np.ndarray:
    last = getattr(layer, "data_format", None) or keras.config.image_data_format()
    return np.moveaxis(values, -1, 1) if values.ndim > 2 and last == "channels_last" else values

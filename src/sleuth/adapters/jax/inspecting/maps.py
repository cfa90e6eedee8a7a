"""Weights of convolutions and what layers put out, as arrays with the channels in second place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, in_words, layer_named, layers_wanted
from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.forms import form_of
from sleuth.adapters.jax.inspecting.model_copy import Guest
from sleuth.adapters.jax.trace import Trace
from sleuth.adapters.jax.words import family_of
from sleuth.core.contract.inspection import Kernels, Maps
from sleuth.core.errors import UnusableInput

# Flax keeps channels last, Equinox first.
LAST = "flax"


def convolutions(modules: list[tuple[str, Any]]) -> list[str]:
    return [path for path, module in modules if family_of(module) == "conv"]


def kernels(model: Any, layer: str | None) -> Kernels:
    modules = form_of(model).modules(model)
    known = convolutions(modules)
    path = chosen_convolution(kind_of_model(model), known, layer, last=False)
    module = layer_named(modules, path, known, "convolution")
    if family_of(module) != "conv":
        raise UnusableInput(f"{path} is of kind {type(module).__name__}, not a convolution. {among(known, 'convolution')}")
    return Kernels(path, type(module).__name__, _weights(module).copy())


def _weights(module: Any) -> np.ndarray:
    """(out, in, *kernel): Flax has (*kernel, in, out)."""
    if not _is_flax(module):
        return to_numpy(module.weight)
    kernel = to_numpy(module.kernel[...])
    kernel = kernel.swapaxes(-1, -2) if getattr(module, "transpose_kernel", False) else kernel
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def maps(model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
    guest = Guest(model, inputs)
    modules = guest.modules()
    wanted = layers_wanted(kind_of_model(model), [path for path, _ in modules if path], convolutions(modules), layers)
    trace = traced(guest)
    visits = trace.marks.visits
    heard = [
        (v.path, v.module, atoms[0])
        for number, v in enumerate(visits)
        if v.module is not None and v.path in wanted and isinstance((atoms := trace.returned.get(number, [None]))[0], int)
    ]
    if not heard:
        raise UnusableInput(f"the forward pass does not reach {', '.join(wanted)}, or it puts out no array.")
    values = trace.values(guest.bench, guest.arrays, [slot for _, _, slot in heard])
    return tuple(
        Maps(path, type(module).__name__, np.moveaxis(array, channel_axis(module, array.shape), 1))
        for (path, module, _), array in zip(heard, [to_numpy(v).copy() for v in values], strict=True)
    )


def traced(guest: Guest) -> Trace:
    try:
        return guest.trace()
    except Exception as error:
        raise UnusableInput(in_words(explain(error, "forward", guest.progress.marks.failed_in))) from None


def channel_axis(module: Any, shape: tuple[int, ...]) -> int:
    """Where the channels stand in what a layer puts out."""
    if len(shape) < 3:
        return len(shape) - 1
    out = _out(module)
    fits = [axis for axis in (1, len(shape) - 1) if out is None or shape[axis] == out]
    last = len(shape) - 1
    return fits[0] if len(fits) == 1 else last if _is_flax(module) else 1


def _out(module: Any) -> int | None:
    for name in ("out_features", "num_features", "out_channels"):
        if isinstance(found := getattr(module, name, None), int):
            return found
    held = [child for child in vars(module).values() if hasattr(child, "__dict__") and family_of(child) != "other"]
    return _out(held[-1]) if held else None


def _is_flax(module: Any) -> bool:
    return any(kind.__module__.split(".")[0] == LAST for kind in type(module).__mro__)


def kind_of_model(model: Any) -> str:
    return "a tree of parameters" if isinstance(model, tuple | dict | list) else type(model).__name__

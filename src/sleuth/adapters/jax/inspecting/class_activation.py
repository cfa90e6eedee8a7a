"""Grad-CAM: where a layer speaks for a class."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.common.inspecting.class_activation import credited, targets_of
from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named
from sleuth.adapters.jax.arrays import is_array, to_numpy
from sleuth.adapters.jax.inspecting.maps import channel_axis, convolutions, traced
from sleuth.adapters.jax.inspecting.model_copy import Guest
from sleuth.adapters.jax.pass_listener import Spoken, listened
from sleuth.adapters.jax.trace import Trace
from sleuth.core.contract.inspection import ClassActivation
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves

# Pictures have so many channels at most; the longer axis is a side.
COLOURS = 4


def class_activation(model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    image = _image(inputs)
    guest = Guest(model, inputs)
    modules = guest.modules()
    path = chosen_convolution("the model", convolutions(modules), layer, last=True)
    module = layer_named(modules, path, convolutions(modules), "convolution")
    trace = traced(guest)
    flat = jax.tree.leaves((guest.bench.params, guest.bench.rest, guest.arrays))
    visit, shape = _place(trace, path)
    if len(shape) != 4:
        raise UnusableInput(
            f"{path} puts out {shape}: Grad-CAM needs a layer with a map, (samples, channels, height, width). "
            f"{among(convolutions(modules), 'convolution')}"
        )

    def scored(shift: Any) -> tuple[Any, Any]:
        spoken: list[Any] = []

        def hears(said: Spoken) -> Any:
            if said.visit != visit or spoken:
                return said.value
            spoken.append(said.value)
            return said.value + shift

        return _scores(listened(trace.jaxpr, flat, hears)), spoken[0]

    scores, activation = scored(jnp.zeros(shape))
    told = to_numpy(scores)
    targets = targets_of(target, told)
    gradient = jax.grad(lambda shift: jnp.take_along_axis(scored(shift)[0], targets[:, None], 1).sum())(jnp.zeros(shape))
    axis = channel_axis(module, shape)
    values, slopes = (np.moveaxis(to_numpy(a.astype(jnp.float32)), axis, 1) for a in (activation, gradient))
    return credited(path, targets, told, values, slopes, image)


def _place(trace: Trace, path: str) -> tuple[int, tuple[int, ...]]:
    for number, visit in enumerate(trace.marks.visits):
        atoms = trace.returned.get(number, [])
        if visit.module is not None and visit.path == path and atoms and isinstance(atoms[0], int):
            return number, trace.tape.shapes[atoms[0]]
    raise UnusableInput(f"the forward pass does not reach {path}, or it puts out no array.")


def _image(inputs: Any) -> np.ndarray:
    found = [to_numpy(a) for _, a in leaves(inputs, is_array)]
    pictures = [a for a in found if a.ndim == 4 and a.dtype.kind == "f"]
    if not pictures:
        shapes = ", ".join(str(a.shape) for a in found)
        raise UnusableInput(f"Grad-CAM needs images of shape (samples, height, width, channels) among the inputs; got {shapes}.")
    image = pictures[0]
    last = image.shape[3] <= COLOURS < image.shape[1] or (image.shape[3] <= COLOURS and image.shape[1] == image.shape[2])
    return np.moveaxis(image, 3, 1) if last else image


def _scores(outputs: list[Any]) -> Any:
    """(samples, classes) of what the model returns; scores for every position are added up."""
    found = next((a for a in outputs if getattr(a, "ndim", 0) >= 2), None)
    if found is None:
        shapes = ", ".join(str(getattr(a, "shape", ())) for a in outputs)
        raise UnusableInput(f"Grad-CAM needs scores of shape (samples, classes); the model returns {shapes or 'no array'}.")
    return found.reshape(*found.shape[:2], -1).sum(2) if found.ndim > 2 else found

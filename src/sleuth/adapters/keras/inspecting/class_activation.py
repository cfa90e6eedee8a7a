"""Grad-CAM: where a layer speaks for a class. Nothing is added to what the layer puts out, and the score's gradient by that."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from sleuth.adapters.common.inspecting.class_activation import credited, targets_of
from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.inspecting.forward_pass import say_why_it_fails
from sleuth.adapters.keras.inspecting.maps import after, channels_first, convolutions
from sleuth.adapters.keras.inspecting.model_copy import call, guest, native
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.sides import side_of
from sleuth.core.contract.inspection import ClassActivation
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves


def class_activation(model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    given = native(inputs)
    image = _image(given)
    known = convolutions(model)
    path = chosen_convolution(type(model).__name__, known, layer, last=True)
    with guest(model) as visited:
        found = layer_named(layers(visited), path, known, "convolution")
        try:
            put_out, scores = _answers(visited, given, path, None)
        except UnusableInput:
            raise
        except Exception:
            say_why_it_fails(model, inputs)
            raise
        if len(put_out.shape) != 4:
            raise UnusableInput(
                f"{path} puts out {tuple(put_out.shape)}: Grad-CAM needs a layer with a map, (samples, height, width, channels). "
                f"{among(known, 'convolution')}"
            )
        targets = targets_of(target, backend.values(scores))

        def chosen(addition: Any) -> Any:
            _, told = _answers(visited, given, path, addition, recorded=True)
            return ops.sum(ops.take_along_axis(told, ops.convert_to_tensor(targets[:, None]), axis=1))

        gradient = side_of(visited).gradient_by(chosen, ops.zeros_like(put_out))
        values, slope = (channels_first(np.array(backend.values(a)), found) for a in (put_out, gradient))
        picture = channels_first(np.array(backend.values(image)), found)
        return credited(path, targets, backend.values(scores), values, slope, picture)


def _answers(model: Any, given: Any, path: str, addition: Any, recorded: bool = False) -> tuple[Any, Any]:
    """What the layer puts out at its last call, and (samples, classes); scores for every position are added up."""
    put_out: list[Any] = []

    def left(path: str, layer: Any, output: Any) -> Any:
        put_out.append(output)
        return output if addition is None else output + addition

    with replaced(keras.layers.Layer, "__call__", after(model, [path], left)):
        output = model(given, **({"training": False} if model._call_has_training_arg else {})) if recorded else call(model, given)
    if not put_out:
        raise UnusableInput(f"the forward pass does not reach {path}.")
    scores = next((a for _, a in leaves(output, backend.is_tensor) if len(a.shape) >= 2), None)
    if scores is None:
        raise UnusableInput("Grad-CAM needs scores of shape (samples, classes); the model returns none.")
    axes = tuple(range(1, len(scores.shape) - 1))
    return put_out[-1], ops.sum(scores, axis=axes) if axes else scores


def _image(given: Any) -> Any:
    found = [a for _, a in leaves(given, backend.is_array) if len(a.shape) == 4 and "float" in backend.dtype(a)]
    if not found:
        shapes = ", ".join(str(tuple(a.shape)) for _, a in leaves(given, backend.is_array))
        raise UnusableInput(f"Grad-CAM needs images of shape (samples, height, width, channels) among the inputs; got {shapes}.")
    return found[0]

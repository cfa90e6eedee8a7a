"""Grad-CAM: where a layer speaks for a class. Its channels, each weighted by the mean of the score's gradient by it."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.common.inspecting.class_activation import credited, targets_of
from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named, require_passage
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx, is_array, values
from sleuth.adapters.mlx.copying import guest
from sleuth.adapters.mlx.inspecting.forward_pass import passage
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.inspecting.maps import channels_second, convolutions
from sleuth.adapters.mlx.model_parts import every_module, modules
from sleuth.core.contract.inspection import ClassActivation
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import call_model


def class_activation(model: nn.Module, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    given = as_mlx(inputs)
    flat = [path for path, m in modules(model) if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    path = chosen_convolution(type(model).__name__, flat, layer, last=True)
    layer_named(every_module(model), path, convolutions(model), "convolution")
    image = _image(given)
    with guest(model) as visited:
        try:
            scores, put_out = _answers(visited, given, path, None)
            mx.eval(scores, put_out)
        except UnusableInput:
            raise
        except Exception:
            require_passage(passage(model, inputs))
            raise
        if put_out is None or put_out.ndim != 4:
            got = "nothing" if put_out is None else tuple(put_out.shape)
            raise UnusableInput(
                f"{path} puts out {got}: Grad-CAM needs a layer with a map, (samples, height, width, channels). "
                f"{among(convolutions(model), 'convolution')}"
            )
        told = values(scores)
        targets = targets_of(target, told)
        chosen = mx.array(targets)[:, None]

        def chosen_scores(shift: mx.array) -> mx.array:
            return mx.take_along_axis(_answers(visited, given, path, shift)[0], chosen, axis=1).sum()

        activation, slopes = (channels_second(values(a)) for a in (put_out, mx.grad(chosen_scores)(mx.zeros_like(put_out))))
    return credited(path, targets, told, activation, slopes, channels_second(values(image)).copy())


def _answers(model: nn.Module, given: Any, path: str, shift: mx.array | None) -> tuple[mx.array, mx.array | None]:
    """(samples, classes), and what the layer puts out. `shift` is added to that: the gradient by it is the gradient by that."""
    heard: list[mx.array] = []

    def shifted(number: int, module: nn.Module, output: Any) -> Any:
        if visitor.noted[number].path != path or not is_array(output) or heard:
            return output
        heard.append(output)
        return output if shift is None else output + shift

    visitor = Visitor(model, on_output=shifted)
    with visitor.following():
        scores = _scores(call_model(model, model.__call__, given))
    return scores, heard[0] if heard else None


def _image(given: Any) -> mx.array:
    arrays = arrays_in(given)
    found = [a for a in arrays if a.ndim == 4 and mx.issubdtype(a.dtype, mx.floating)]
    if not found:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        raise UnusableInput(f"Grad-CAM needs images of shape (samples, height, width, channels) among the inputs; got {shapes}.")
    return found[0]


def _scores(output: Any) -> mx.array:
    """(samples, classes) of what the model returns; scores for every position are added up: classes stand last."""
    arrays = dict(leaves(output, is_array))
    scores = arrays.get("logits", next((a for a in arrays.values() if a.ndim >= 2), None))
    if scores is None:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays.values())
        raise UnusableInput(f"Grad-CAM needs scores of shape (samples, classes); the model returns {shapes or 'no array'}.")
    return scores.reshape(scores.shape[0], -1, scores.shape[-1]).sum(axis=1)

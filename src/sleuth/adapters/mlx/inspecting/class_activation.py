"""Grad-CAM: where a layer speaks for a class. Its channels, each weighted by the mean of the score's gradient by it."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.anatomy import every_module, modules
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx, is_array, values
from sleuth.adapters.mlx.inspecting.guest import guest
from sleuth.adapters.mlx.inspecting.maps import channels_second, convolutions
from sleuth.adapters.mlx.inspecting.passage import passage
from sleuth.adapters.mlx.inspecting.visits import Visitor
from sleuth.core.class_activation import credited, targets_of
from sleuth.core.errors import UnusableInput
from sleuth.core.inspection import ClassActivation
from sleuth.core.naming_layers import among, layer_named, require_passage
from sleuth.core.subject import call_model
from sleuth.core.tree import leaves


def class_activation(model: nn.Module, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    given = as_mlx(inputs)
    path = _layer(model, layer)
    layer_named(every_module(model), path, convolutions(model), "convolution")
    image = _image(given)
    heard: list[mx.array] = []

    with guest(model) as visited:

        def scores_of(shift: mx.array | None) -> mx.array:
            """`shift` is added to what the layer puts out: the gradient by it is the gradient by that."""
            heard.clear()

            def shifted(number: int, module: nn.Module, output: Any) -> Any:
                if visitor.noted[number].path != path or not is_array(output) or heard:
                    return output
                heard.append(output)
                return output if shift is None else output + shift

            visitor = Visitor(visited, on_output=shifted)
            with visitor.following():
                return _scores(call_model(visited, visited.__call__, given))

        try:
            scores = scores_of(None)
            mx.eval(scores, heard)
        except UnusableInput:
            raise
        except Exception:
            require_passage(passage(model, inputs))
            raise
        if not heard or heard[0].ndim != 4:
            got = tuple(heard[0].shape) if heard else "nothing"
            raise UnusableInput(
                f"{path} puts out {got}: Grad-CAM needs a layer with a map, (samples, height, width, channels). "
                f"{among(convolutions(model), 'convolution')}"
            )
        activation, told = values(heard[0]), values(scores)
        targets = targets_of(target, told)
        chosen = mx.array(targets)[:, None]
        gradient = mx.grad(lambda shift: mx.take_along_axis(scores_of(shift), chosen, axis=1).sum())(mx.zeros_like(heard[0]))
        slopes = values(gradient)
    picture = channels_second(values(image)).copy()
    return credited(path, targets, told, channels_second(activation), channels_second(slopes), picture)


def _image(given: Any) -> mx.array:
    arrays = arrays_in(given)
    found = [a for a in arrays if a.ndim == 4 and mx.issubdtype(a.dtype, mx.floating)]
    if not found:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        raise UnusableInput(f"Grad-CAM needs images of shape (samples, height, width, channels) among the inputs; got {shapes}.")
    return found[0]


def _layer(model: nn.Module, layer: str | None) -> str:
    known = [path for path, m in modules(model) if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    if layer is None and not known:
        raise UnusableInput(f"{type(model).__name__} has no two-dimensional convolution: name the layer whose map is meant.")
    return known[-1] if layer is None else layer


def _scores(output: Any) -> mx.array:
    """(samples, classes) of what the model returns; scores for every position are added up: classes stand last."""
    arrays = dict(leaves(output, is_array))
    scores = arrays.get("logits", next((a for a in arrays.values() if a.ndim >= 2), None))
    if scores is None:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays.values())
        raise UnusableInput(f"Grad-CAM needs scores of shape (samples, classes); the model returns {shapes or 'no array'}.")
    return scores.reshape(scores.shape[0], -1, scores.shape[-1]).sum(axis=1)

"""Grad-CAM: where a layer speaks for a class. Its channels, each weighted by the mean of the score's gradient by it."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.anatomy import every_module, modules
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx, is_array, values
from sleuth.adapters.mlx.inspecting.guest import guest
from sleuth.adapters.mlx.inspecting.maps import channels_second, convolutions
from sleuth.adapters.mlx.inspecting.passage import passage
from sleuth.adapters.mlx.inspecting.visits import Visitor
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
        activation = values(heard[0])
        targets = _targets(target, values(scores))
        chosen = mx.array(targets)[:, None]
        gradient = mx.grad(lambda shift: mx.take_along_axis(scores_of(shift), chosen, axis=1).sum())(mx.zeros_like(heard[0]))
        weight = values(gradient).mean(axis=(1, 2), keepdims=True)
    maps = np.maximum((weight * activation).sum(axis=-1), 0.0)
    picture = channels_second(values(image))
    return ClassActivation(
        path=path,
        targets=tuple(int(t) for t in targets),
        scores=tuple(float(s) for s in values(scores)[np.arange(len(targets)), targets]),
        maps=maps,
        enlarged=np.stack([_enlarged(one, picture.shape[2:]) for one in maps]),
        image=picture.copy(),
    )


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


def _targets(target: int | Sequence[int] | None, scores: np.ndarray) -> np.ndarray:
    samples, classes = scores.shape
    if target is None:
        return scores.argmax(axis=1)
    chosen = np.asarray(target, dtype=np.int64).reshape(-1)
    if len(chosen) not in (1, samples):
        raise UnusableInput(f"there are {len(chosen)} targets for {samples} samples: give one, or one a sample.")
    if bool(((chosen < 0) | (chosen >= classes)).any()):
        raise UnusableInput(f"target={target} is not a class: the model has {classes} of them, from 0 to {classes - 1}.")
    return np.broadcast_to(chosen, (samples,)).copy()


def _enlarged(small: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Bilinear, between the middles of the pixels."""
    rows, columns = (_places(n, to) for n, to in zip(small.shape, shape, strict=True))
    by_row = small[rows[0]] * (1 - rows[2])[:, None] + small[rows[1]] * rows[2][:, None]
    return by_row[:, columns[0]] * (1 - columns[2]) + by_row[:, columns[1]] * columns[2]


def _places(size: int, to: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    at = np.clip((np.arange(to) + 0.5) * size / to - 0.5, 0, size - 1)
    low = np.floor(at).astype(int)
    return low, np.minimum(low + 1, size - 1), at - low

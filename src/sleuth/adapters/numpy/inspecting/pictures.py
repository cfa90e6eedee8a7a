"""Filters, feature maps and class activation of hand-written convolutions, in whichever order they keep their axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sleuth.adapters.common.inspecting.class_activation import credited, targets_of
from sleuth.adapters.common.manual_loop.calling import takes_nothing
from sleuth.adapters.numpy.describing import describe
from sleuth.adapters.numpy.inspecting.layer_calls import Visitor
from sleuth.adapters.numpy.inspecting.model_copy import ask, guest
from sleuth.adapters.numpy.model_parts import layers
from sleuth.core.contract.inspection import ClassActivation, Kernels, Maps
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Layer
from sleuth.core.subject import Subject


def kernels(model: Any, layer: str | None) -> Kernels:
    with guest(model) as visited:
        told = describe(Subject(visited, None))
        found = _chosen(told.layers, layer)
        values = dict((p, a) for p, a in _weights(visited, found.path) if a.ndim >= 3)
        if not values:
            raise UnusableInput(f"{found.path} holds no kernel of three axes or more.")
        kernel = next(iter(values.values()))
        bias = next((a.size for _, a in _weights(visited, found.path) if a.ndim == 1), None)
        # (height, width, in, out) where the last axis is as long as the bias, and the first is not.
        if bias is not None and kernel.shape[0] != bias and kernel.shape[-1] == bias:
            kernel = np.moveaxis(kernel, (-1, -2), (0, 1))
        return Kernels(found.path, found.kind, np.array(kernel))


def maps(model: Any, inputs: Any, names: Sequence[str]) -> tuple[Maps, ...]:
    with guest(model) as visited:
        told = {layer.path: layer for layer in describe(Subject(visited, None)).layers}
        _require(names, told)
        wanted = set(names) or {path for path, layer in told.items() if layer.family == "conv"}
        if not wanted:
            raise UnusableInput("the model has no convolution: name the layers to be looked at.")
        visitor = Visitor(visited)
        with visitor.following(), np.errstate(all="ignore"):
            ask(visited, inputs)
        found = [n for n in visitor.notes if n.path in wanted and isinstance(n.output, np.ndarray)]
        return tuple(Maps(n.path, told[n.path].kind, channels_second(n.output, told[n.path])) for n in found)


def class_activation(model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    """The gradient by a layer's output is what its own backward is given."""
    with guest(model) as visited, np.errstate(all="ignore"):
        told = {found.path: found for found in describe(Subject(visited, None)).layers}
        _require([layer] if layer is not None else [], told)
        backward = getattr(visited, "backward", None)
        if not callable(backward) or takes_nothing(backward):
            raise UnusableInput("the model has no backward(grad) that takes the gradient of a score.")
        visitor = Visitor(visited)
        with visitor.following():
            scores = ask(visited, inputs)
            if not isinstance(scores, np.ndarray) or scores.ndim != 2:
                raise UnusableInput("class activation wants one row of scores a sample.")
            chosen = targets_of(target, scores)
            backward(np.eye(scores.shape[1], dtype=scores.dtype)[chosen])
        drawn = [n for n in visitor.notes if n.way == "forward" and isinstance(n.output, np.ndarray) and n.output.ndim == 4]
        drawn = [n for n in drawn if n.path and (n.path == layer or layer is None)]
        if not drawn:
            raise UnusableInput(f"{layer or 'no layer'} puts out no map of (samples, channels, height, width).")
        passed = {n.path: n.given for n in visitor.notes if n.way == "backward"}
        best = next((n for n in reversed(drawn) if isinstance(passed.get(n.path), np.ndarray)), None)
        if best is None:
            raise UnusableInput(f"the backward of {drawn[-1].path} was not called: its gradient is not known.")
        values, gradient = (channels_second(a, told[best.path]) for a in (best.output, passed[best.path]))
        return credited(best.path, chosen, scores, values, gradient, np.asarray(inputs))


def channels_second(output: np.ndarray, layer: Layer) -> np.ndarray:
    out = layer.settings.get("out")
    if output.ndim >= 3 and out is not None and output.shape[1] != out and output.shape[-1] == out:
        return np.moveaxis(output, -1, 1).copy()
    return np.array(output)


def _chosen(told: Sequence[Layer], name: str | None) -> Layer:
    _require([name] if name is not None else [], {layer.path: layer for layer in told})
    found = next((x for x in told if (x.path == name if name is not None else x.family == "conv")), None)
    if found is None:
        raise UnusableInput("the model has no convolution.")
    return found


def _require(names: Sequence[str], told: dict[str, Layer]) -> None:
    unknown = [name for name in names if name not in told]
    if unknown:
        raise UnusableInput(f"the model has no layer {unknown[0]}; it has {', '.join(told)}.")


def _weights(model: Any, path: str) -> list[tuple[str, np.ndarray]]:
    owner = dict(layers(model)).get(path, model)
    return [(key, a) for key, a in getattr(owner, "__dict__", {}).items() if isinstance(a, np.ndarray) and key != "columns"]

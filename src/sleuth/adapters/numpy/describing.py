"""Describing a hand-written model: what its layers are is guessed from names and shapes, and only where that is safe."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.adapters.common.assignment import class_line
from sleuth.adapters.common.machine import machine
from sleuth.adapters.common.manual_loop.learning_rate import find_rate, options
from sleuth.adapters.numpy import stepping
from sleuth.adapters.numpy.model_parts import Parameters, holders, is_weight, layers
from sleuth.core.observation import Architecture, Layer, Parameter, Settings, Stray
from sleuth.core.subject import Subject

ACTIVATIONS = (
    "relu", "relu6", "leaky_relu", "prelu", "elu", "selu", "celu", "gelu", "silu", "swish", "mish", "softplus", "sigmoid",
    "hardsigmoid", "tanh", "hardtanh", "hardswish",
)  # fmt: skip
SOFTMAXES = ("softmax", "log_softmax")
# The plain name of a class, digits and endings taken off → family.
FAMILIES = {
    **dict.fromkeys(("linear", "dense", "fullyconnected", "fc", "affine"), "linear"),
    **dict.fromkeys(("conv", "convolution", "convd", "convolutiond"), "conv"),
    **dict.fromkeys(("rnn", "lstm", "gru", "rnncell", "lstmcell", "grucell", "recurrent"), "recurrent"),
    **dict.fromkeys(("attention", "selfattention", "multiheadattention"), "attention"),
    **dict.fromkeys(("embedding", "embeddings", "tokenembedding"), "embedding"),
    **dict.fromkeys(("batchnorm", "batchnormd", "batchnormalization", "batchnormalisation"), "batchnorm"),
    **dict.fromkeys(("layernorm", "layernormalization", "groupnorm", "rmsnorm", "instancenorm", "instancenormd"), "norm"),
    **dict.fromkeys(("dropout", "dropoutd"), "dropout"),
    **dict.fromkeys((name.replace("_", "") for name in SOFTMAXES), "softmax"),
    **dict.fromkeys((name.replace("_", "") for name in ACTIVATIONS), "activation"),
    **dict.fromkeys(("maxpool", "maxpoold", "avgpool", "avgpoold", "meanpool", "maxpooling", "maxpoolingd"), "pool"),
    **dict.fromkeys(("flatten", "reshape"), "flatten"),
}
WEIGHTY = {"linear", "conv", "recurrent", "embedding"}
# Attribute of the layer → our word for it.
SETTINGS = {"p": "p", "rate": "p", "axis": "axis", "dim": "axis", "eps": "epsilon", "momentum": "momentum", "stride": "stride"}


def describe(subject: Subject) -> Architecture:
    found = layers(subject.model)
    held = holders(subject.model)
    parameters = tuple(_parameters(subject, dict(found), held))
    described = [_layer(path, layer, parameters) for path, layer in found] or [_layer("", subject.model, parameters)]
    return Architecture(tuple(described), parameters, strays=strays(subject.model, found))


def strays(model: Any, found: list[tuple[str, Any]]) -> tuple[Stray, ...] | None:
    """Layers whose weights parameters() leaves out, though it gives those of another layer of the same class. Of any other array
    it cannot be told whether it is a weight, a cache or a constant; None where no two layers are alike."""
    given = {id(a) for a in Parameters(model).arrays().values()}
    weights = [(path, layer, k, v) for path, layer in found for k, v in getattr(layer, "__dict__", {}).items() if is_weight(k, v)]
    known = {(type(layer), key) for _, layer, key, array in weights if id(array) in given}
    if not known:
        return None
    left_out: dict[str, tuple[Any, int]] = {}
    for path, layer, key, array in weights:
        if id(array) not in given and (type(layer), key) in known and not is_frozen(layer):
            left_out[path] = layer, left_out.get(path, (layer, 0))[1] + array.size
    return tuple(Stray(path, "layer", size, class_line(type(layer))) for path, (layer, size) in left_out.items())


def settings(subject: Subject) -> Settings:
    arrays = list(Parameters(subject.model).arrays().values())
    dtypes = [str(a.dtype) for a in arrays]
    rate = find_rate(subject.model, subject.optimizer)
    own = {id(a) for a in arrays}
    held = stepping.held_arrays(subject.optimizer)
    return Settings(
        framework="numpy",
        loss=loss_name(subject),
        optimiser=stepping.optimiser_name(subject.model, subject.optimizer),
        lr=None if rate is None else rate.get(),
        optimiser_options=options(subject.optimizer),
        parameter_dtype=max(set(dtypes), key=dtypes.count) if dtypes else None,
        foreign_parameters=sum(id(a) not in own for a in held or ()),
        default_dtype="float64",
        versions={"numpy": np.__version__, "python": sys.version.split()[0]},
        machine=machine(),
    )


def loss_name(subject: Subject) -> str | None:
    thing = subject.loss or subject.step
    if thing is None:
        return next((name for name in ("compute_loss", "forward_loss") if hasattr(subject.model, name)), None)
    return getattr(thing, "__name__", type(thing).__name__)


def family_of(layer: Any) -> str:
    """By the name of its class or of a parent; a weighty family needs an array to show for it."""
    for kind in type(layer).__mro__[:-1]:
        family = FAMILIES.get(_plain(kind.__name__), "loss" if kind.__name__.endswith("Loss") else "")
        if family in WEIGHTY and not any(
            isinstance(v, np.ndarray | dict | list) for v in getattr(layer, "__dict__", {}).values()
        ):
            family = ""
        if family:
            return family
    return "container" if layers(layer) else "other"


def activation_of(layer: Any) -> str:
    """Which activation the layer's output went through: its own, or one that it was given to apply at its end."""
    for kind in type(layer).__mro__[:-1]:
        for name in ACTIVATIONS:
            if _plain(kind.__name__) == name.replace("_", ""):
                return name
    given = getattr(layer, "activation", None)
    name = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
    return next((a for a in ACTIVATIONS if _plain(name) == a.replace("_", "")), "") if given is not None else ""


def _plain(name: str) -> str:
    """Conv2D → convd, ReLULayer → relu, log_softmax → logsoftmax."""
    return re.sub(r"[\d_]|layer", "", name.lower())


def _layer(path: str, layer: Any, parameters: tuple[Parameter, ...]) -> Layer:
    family = family_of(layer)
    values: dict[str, Any] = {}
    for attribute, word in SETTINGS.items():
        value = getattr(layer, attribute, None)
        if isinstance(value, int | float | bool | str | tuple) and word not in values:
            values[word] = value
    values |= _widths(family, [p for p in parameters if p.layer == path])
    if activation := activation_of(layer):
        values["activation"] = activation
    return Layer(path, type(layer).__name__, family, values, class_line(type(layer)))


def _widths(family: str, own: list[Parameter]) -> dict[str, Any]:
    """In and out, as far as shapes tell: of a weight matrix, the side that the bias has is the outputs'."""
    weight = next((p.shape for p in own if len(p.shape) >= 2 and p.size > max(p.shape)), None)
    bias = next((p.size for p in own if p.size == max(p.shape, default=0)), None)
    if family in ("batchnorm", "norm"):
        return {} if bias is None else {"in": bias}
    if weight is None or family not in ("linear", "conv", "embedding"):
        return {}
    if family == "embedding":
        return {"in": weight[0], "out": weight[1]}
    known: dict[str, Any] = {"bias": bias is not None}
    if family == "conv" and len(weight) > 2 and bias == weight[-1] and bias != weight[0]:  # (height, width, in, out)
        return known | {"kernel": weight[:-2], "in": weight[-2], "out": weight[-1]}
    if family == "conv" and len(weight) > 2:
        known["kernel"] = weight[2:]
    first_is_out = bias == weight[0] or (bias is None and family == "conv")
    if first_is_out or bias == weight[1]:
        known |= {"in": weight[1], "out": weight[0]} if first_is_out else {"in": weight[0], "out": weight[1]}
    return known


def _parameters(subject: Subject, found: dict[str, Any], held: dict[int, tuple[str, str]]) -> Iterator[Parameter]:
    first: dict[int, str] = {}
    optimised = stepping.held_arrays(subject.optimizer)
    ids = None if optimised is None else {id(a) for a in optimised}
    for name, array in Parameters(subject.model).arrays().items():
        path, _ = held.get(id(array), ("", ""))
        layer = found.get(path, subject.model)
        yield Parameter(
            path=name,
            shape=tuple(array.shape),
            dtype=str(array.dtype),
            device="cpu",
            trainable=bool(array.flags.writeable) and not is_frozen(layer),
            optimised=None if ids is None else id(array) in ids,
            layer=path,
            family=family_of(layer) if layer is not subject.model else "other",
            tied_to=first.get(id(array)),
        )
        first.setdefault(id(array), name)


def is_frozen(layer: Any) -> bool:
    return getattr(layer, "frozen", False) is True or any(
        getattr(layer, n, True) is False for n in ("trainable", "requires_grad")
    )

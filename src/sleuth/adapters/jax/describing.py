"""Describing a model and its optimiser."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from sleuth.adapters.common.assignment import class_line
from sleuth.adapters.common.machine import machine
from sleuth.adapters.jax.arrays import device
from sleuth.adapters.jax.compile_effort import HASTY, executable
from sleuth.adapters.jax.forms import Form, form_of
from sleuth.adapters.jax.freezing import frozen_on_purpose
from sleuth.adapters.jax.optimising import injected, read, transformation
from sleuth.adapters.jax.source_lines import written_at
from sleuth.adapters.jax.watching.layer_places import array_made_at, made_at
from sleuth.adapters.jax.words import ACTIVATIONS, FUNCTIONS, SOFTMAXES, family_of
from sleuth.core.observation import Architecture, Layer, Parameter, Settings
from sleuth.core.subject import Subject

# Attribute of the layer → our word for it.
SETTINGS = {
    "in_features": "in", "out_features": "out", "in_channels": "in", "out_channels": "out", "num_features": "in",
    "num_embeddings": "in", "features": "out", "embedding_size": "out", "hidden_features": "out", "hidden_size": "out",
    "input_size": "in", "kernel_size": "kernel", "strides": "stride", "stride": "stride", "padding": "padding", "rate": "p",
    "p": "p", "epsilon": "epsilon", "eps": "epsilon", "momentum": "momentum", "num_heads": "heads", "axis": "axis",
    "use_bias": "bias",
}  # fmt: skip


def describe(subject: Subject) -> Architecture:
    form = form_of(subject.model, subject.optimizer)
    model = subject.model
    modules = form.modules(model)
    layers = [_layer(path, module) for path, module in modules if path] + list(_functions(modules))
    parameters = (*_parameters(subject, form, dict(modules)), *_frozen(form, dict(modules)))
    if not modules:
        layers = list(_plain_layers(parameters))
    elif len(modules) == 1:
        layers = [_layer("", modules[0][1])]
    # Whatever JAX does not find in a tree is no parameter to anybody: there is nothing to stray from.
    return Architecture(tuple(layers), parameters, strays=None)


def settings(subject: Subject) -> Settings:
    form = form_of(subject.model, subject.optimizer)
    arrays = jax.tree.leaves(form.params)
    dtypes = [str(a.dtype) for a in arrays]
    tx = transformation(subject.optimizer)
    name = lr = None
    options: dict[str, Any] = {}
    if tx is not None:
        recipe = read(tx, _state(subject.optimizer, tx, form))
        name, lr, options = recipe.name or "optax", recipe.lr, recipe.options
    elif isinstance(subject.optimizer, int | float):
        name, lr = "SGD", float(subject.optimizer)
    return Settings(
        framework="jax",
        loss=loss_name(subject),
        optimiser=name,
        lr=lr,
        optimiser_options=options,
        parameter_dtype=max(set(dtypes), key=dtypes.count) if dtypes else None,
        default_dtype=str(jax.dtypes.canonicalize_dtype(float)),
        versions={n: v for n in ("jax", "flax", "equinox", "optax") if (v := getattr(sys.modules.get(n), "__version__", None))},
        machine={**machine(), "device": ", ".join(sorted({device(a) for a in arrays if isinstance(a, jax.Array)}))},
    )


def _state(optimiser: Any, tx: Any, form: Form) -> Any:
    """Only settings that were injected are kept in the state; anything else needs none."""
    kept = getattr(optimiser, "opt_state", None)
    if kept is not None and injected(kept):
        return kept
    return tx.init(form.params) if "inject" in getattr(tx.init, "__qualname__", "") else None


def loss_name(subject: Subject) -> str | None:
    thing = subject.loss or subject.step
    return None if thing is None else getattr(thing, "__name__", type(thing).__name__)


def layer_settings(module: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for attribute, word in SETTINGS.items():
        value = getattr(module, attribute, None)
        if isinstance(value, int | float | bool | str | tuple) and word not in values:
            values[word] = value
    if family_of(module) == "activation":
        values["activation"] = type(module).__name__.lower()
    return values


def _layer(path: str, module: Any) -> Layer:
    family = family_of(module)
    if family == "other" and any(_is_holder(v) for v in vars(module).values()):
        family = "container"
    return Layer(path, type(module).__name__, family, layer_settings(module), made_at(module) or class_line(type(module)))


def _is_holder(value: Any) -> bool:
    return callable(value) and hasattr(value, "__dict__") and not isinstance(value, type) and not inspect.isfunction(value)


def _functions(modules: list[tuple[str, Any]]) -> Iterator[Layer]:
    """Activations that a layer was given as functions: in a Sequential, or as an attribute."""
    for path, module in modules:
        for name, value in vars(module).items():
            several = list(enumerate(value)) if isinstance(value, list | tuple) or type(value).__name__ == "List" else []
            for at, thing in [(name, value), *((f"{name}.{i}", v) for i, v in several)]:
                word = FUNCTIONS.get(getattr(getattr(thing, "fn", thing), "__name__", ""))
                if callable(thing) and word in (*ACTIVATIONS, *SOFTMAXES):
                    family = "softmax" if word in SOFTMAXES else "activation"
                    yield Layer(f"{path}.{at}" if path else at, str(word), family, {"activation": word})


def _plain_layers(parameters: tuple[Parameter, ...]) -> Iterator[Layer]:
    """A matrix and what lies beside it in the tree."""
    for layer in dict.fromkeys(p.layer for p in parameters):
        own = [p for p in parameters if p.layer == layer]
        matrix = next((p for p in own if len(p.shape) == 2), None)
        sides = {"in": matrix.shape[0], "out": matrix.shape[1]} if matrix is not None else {}
        family = "linear" if matrix is not None and own[0].family == "linear" else "other"
        yield Layer(layer, "dict", family, sides, next((p.location for p in own if p.location is not None), None))


def _parameters(subject: Subject, form: Form, modules: dict[str, Any]) -> Iterator[Parameter]:
    flat = dict(zip(form.flat_paths(), jax.tree.leaves(form.params), strict=True))
    moved = _moved(subject, form)
    tx = transformation(subject.optimizer)
    frozen = frozen_on_purpose(tx, form) if tx is not None else set()
    for path in form.paths():
        array, plain = flat[path], not modules
        yield Parameter(
            path=path,
            shape=tuple(array.shape),
            dtype=str(array.dtype),
            device=device(array),
            trainable=path not in frozen,
            optimised=None if moved is None else path in moved,
            layer=_layer_of(path, modules),
            family=_plain_family(path, array, flat) if plain else family_of(modules.get(_layer_of(path, modules))),
            location=array_made_at(array) or (written_at(path) if plain else None),
        )


def _frozen(form: Form, modules: dict[str, Any]) -> Iterator[Parameter]:
    for path, array in form.frozen().items():
        layer = _holder(path.rpartition(".")[0], modules)
        kind = str(array.dtype), device(array)
        yield Parameter(
            path, tuple(array.shape), *kind, trainable=False, optimised=False, layer=layer, family=family_of(modules.get(layer))
        )


def holders(subject: Subject) -> dict[str, str]:
    """Of each trainable parameter, the layer that holds it."""
    form = form_of(subject.model, subject.optimizer)
    modules = dict(form.modules(subject.model))
    return {path: _layer_of(path, modules) for path in form.paths()}


def _layer_of(path: str, modules: dict[str, Any]) -> str:
    """Of plain functions the place of the weights in their tree stands for it."""
    holder = path.rpartition(".")[0]
    return _holder(holder, modules) if modules else holder or path


def _holder(path: str, modules: dict[str, Any]) -> str:
    while path and path not in modules:
        path = path.rpartition(".")[0]
    return path


def _plain_family(path: str, array: Any, flat: dict[str, Any]) -> str:
    """A matrix with a vector as long as its columns beside it is a linear layer; anything else is not told."""
    if array.ndim not in (1, 2):
        return "other"
    holder = path.rpartition(".")[0]
    beside = [a for p, a in flat.items() if p.rpartition(".")[0] == holder]
    matrices = [a for a in beside if a.ndim == 2]
    vectors = [a for a in beside if a.ndim == 1]
    if holder and len(matrices) == 1 and all(v.shape[0] == matrices[0].shape[1] for v in vectors):
        return "linear"
    return "other"


def _moved(subject: Subject, form: Form) -> set[str] | None:
    """Parameters that the optimiser moves when every gradient is one; None without an optimiser, or if it moves nothing yet."""
    tx = transformation(subject.optimizer)
    if tx is None:
        return None
    try:
        ones = jax.tree.map(lambda p: np.ones(p.shape, p.dtype), form.params)
        lowered = jax.jit(lambda *given: tx.update(*given)[0]).lower(ones, tx.init(form.params), form.params)
        updates = executable(lowered, HASTY)(ones, tx.init(form.params), form.params)
        found = dict(zip(form.flat_paths(), jax.device_get(jax.tree.leaves(updates)), strict=True))
    except Exception:  # an optimiser that wants more than gradients: it is met on the bench
        return None
    moved = {path for path, update in found.items() if np.any(update != 0)}
    return moved or None

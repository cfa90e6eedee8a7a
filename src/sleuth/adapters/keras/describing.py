"""Describing a Keras model, its compiled loss and its optimiser."""

import sys
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from sleuth.adapters.common.machine import machine
from sleuth.adapters.common.schedule import highest
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.copying import as_built
from sleuth.adapters.keras.families import family_of, settings_of, version
from sleuth.adapters.keras.losses import loss_name
from sleuth.adapters.keras.model_parts import layers, variables
from sleuth.adapters.keras.source_lines import weight_line
from sleuth.adapters.keras.user_lines import frozen_at, made_at
from sleuth.core.observation import Architecture, Layer, Parameter, Settings
from sleuth.core.subject import Subject


def optimiser_of(subject: Subject) -> Any:
    """The one that was given, else the compiled one."""
    given = subject.optimizer
    return given if given is not None else getattr(subject.model, "optimizer", None)


def describe(subject: Subject) -> Architecture:
    subject = as_built(subject)
    model = subject.model
    found = layers(model) or [("", model)]
    described = tuple(
        Layer(path, type(layer).__name__, family_of(layer), settings_of(layer), made_at(layer)) for path, layer in found
    )
    # A variable that Keras does not track is not a weight: layers in lists and dicts are tracked, so strays stay unknown.
    parameters = tuple(_parameters(subject, dict(found)))
    still = {p.layer for p in parameters if not p.trainable}
    frozen = frozen_at(layer for path, layer in found if path in still)
    return Architecture(described, parameters, strays=None, frozen_at=frozen)


def _parameters(subject: Subject, found: dict[str, Any]) -> Iterator[Parameter]:
    """Statistics that a batch-norm keeps are no parameters, though Keras lists them among the weights."""
    model = subject.model
    free = {id(v) for v in model.trainable_variables}
    held = held_by(optimiser_of(subject))
    for one in variables(model):
        variable = one.variable
        if not is_learned(variable, found.get(one.layer, model)):
            continue
        yield Parameter(
            path=one.path,
            shape=tuple(int(n) for n in variable.shape),
            dtype=backend.dtype(variable),
            device=backend.device(variable),
            trainable=id(variable) in free,
            optimised=None if held is None else id(variable) in held or id(variable) not in free,
            layer=one.layer,
            family=family_of(found[one.layer]) if one.layer in found else "other",
            location=weight_line(found.get(one.layer, model), variable),
        )


def is_learned(variable: Any, layer: Any) -> bool:
    """Could it be trained? A layer that is frozen lists its kernel among what is not trained, beside its running statistics."""
    return any(variable is v for v in layer._trainable_variables)


def held_by(optimiser: Any) -> set[int] | None:
    """The variables of an optimiser that is built; one that is not takes what `fit` gives it."""
    if not isinstance(optimiser, keras.optimizers.Optimizer) or not optimiser.built:
        return None
    return {id(v) for v in optimiser._trainable_variables}


def settings(subject: Subject) -> Settings:
    subject = as_built(subject)
    optimiser = optimiser_of(subject)
    dtypes = [backend.dtype(v) for v in subject.model.trainable_variables]
    known = isinstance(optimiser, keras.optimizers.Optimizer)
    held = held_by(optimiser)
    own = {id(v) for v in subject.model.weights}
    return Settings(
        framework="keras",
        loss=loss_name(subject),
        optimiser=type(optimiser).__name__ if known else None,
        lr=rate_of(optimiser),
        optimiser_options=_options(optimiser) if known else {},
        parameter_dtype=max(set(dtypes), key=dtypes.count) if dtypes else None,
        default_dtype=str(keras.config.floatx()),
        foreign_parameters=sum(i not in own for i in held or ()),
        versions={"keras": version(), **_backend_version()},
        machine={**machine(), "backend": backend.name()},
    )


def rate_of(optimiser: Any) -> float | None:
    if not isinstance(optimiser, keras.optimizers.Optimizer):
        return None
    return plain(number(optimiser.learning_rate))


def number(rate: Any) -> float:
    return float(backend.values(rate)) if backend.is_array(rate) else float(rate)


def plain(value: float) -> float:
    """0.1 comes back from float32 as 0.10000000149: the shortest number that float32 cannot tell from it."""
    return float(str(np.float32(value)))


def _options(optimiser: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("momentum", "nesterov", "beta_1", "beta_2", "epsilon", "rho", "weight_decay", "clipnorm", "clipvalue",
                 "global_clipnorm", "amsgrad", "use_ema", "gradient_accumulation_steps"):  # fmt: skip
        value = getattr(optimiser, name, None)
        if isinstance(value, int | float | bool):
            found[name] = value
    if "beta_1" in found and "beta_2" in found:
        found["betas"] = (found.pop("beta_1"), found.pop("beta_2"))
    if "epsilon" in found:
        found["eps"] = found.pop("epsilon")
    rate = getattr(optimiser, "_learning_rate", None)
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        peak = highest(lambda step: float(keras.ops.convert_to_numpy(rate(step))))
        found |= {} if peak is None else {"initial_lr": peak}
    return found


def _backend_version() -> dict[str, str]:
    module = sys.modules.get(backend.name())
    return {} if module is None else {backend.name(): str(module.__version__)}

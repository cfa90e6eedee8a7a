"""Describing a compiled model: layers of the logical model that its functions came from, parameters by key."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.adapters.common.machine import machine
from sleuth.adapters.common.manual_loop.learning_rate import find_rate, is_number, options
from sleuth.adapters.mithril import arrays, kinds
from sleuth.adapters.mithril.given_model import Given
from sleuth.adapters.mithril.graph import Graph, Group
from sleuth.adapters.mithril.key_roles import wire
from sleuth.core.observation import Architecture, Layer, Parameter, Settings
from sleuth.core.subject import Subject


def describe(given: Given, loss: Any = None) -> Architecture:
    """`loss`: as the user gave it. What is computed after the model's answer is no layer of it."""
    behind = given.graph.behind(wire(given.graph, loss).outputs)
    layers = tuple(_layer(group, given) for group in given.graph.groups if group.output in behind)
    return Architecture(layers, tuple(_parameters(given)), strays=None)


def parameter_keys(graph: Graph) -> tuple[str, ...]:
    """In the order of the layers that use them first, weights before biases."""
    found: list[str] = []
    for group in graph.groups:
        own = [key for key in group.given() if key in graph.parameters and key not in found]
        found += sorted(own, key=lambda key: group.role(key) == "bias")
    return tuple(found)


def _layer(group: Group, given: Given) -> Layer:
    shapes = {group.role(k): tuple(given.params[k].shape) for k in group.given() if k in given.params}
    fixed = {name: given.graph.constants.get(key) for node in group.nodes for name, key in node.sources.items()}
    return Layer(group.path, group.kind, group.family, kinds.settings_of(group.family, group.kind, shapes, fixed))


def _parameters(given: Given) -> Iterator[Parameter]:
    for key in parameter_keys(given.graph):
        array, group = given.params[key], given.graph.holder(key)
        yield Parameter(
            path=key,
            shape=tuple(array.shape),
            dtype=arrays.dtype(array),
            device=arrays.device(array),
            trainable=not given.physical.inference,
            optimised=None,
            layer="" if group is None else group.path,
            family="other" if group is None else group.family,
        )


def settings(given: Given, subject: Subject) -> Settings:
    optimiser = subject.optimizer
    dtypes = [arrays.dtype(a) for a in given.params.values()]
    rate = find_rate(None, optimiser)
    backend = given.physical.backend
    return Settings(
        framework="mithril",
        loss=loss_name(given.graph, subject),
        optimiser=None if optimiser is None else "SGD" if is_number(optimiser) else _class(optimiser),
        lr=None if rate is None else rate.get(),
        optimiser_options=options(optimiser),
        parameter_dtype=max(set(dtypes), key=dtypes.count) if dtypes else None,
        default_dtype=getattr(backend.default_dtype, "name", None),
        foreign_parameters=len(set(given.params) - set(given.graph.parameters) - set(given.physical.input_keys)),
        versions={
            "backend": str(backend.backend_type),
            "numpy": np.__version__,
            "python": sys.version.split()[0],
        },
        machine=machine(),
    )


def _class(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def loss_name(graph: Graph, subject: Subject) -> str | None:
    thing = subject.loss or subject.step
    if thing is None or isinstance(thing, str):
        key = wire(graph, thing).loss
        nodes = [] if key is None else graph.loss_nodes(key)
        return nodes[0].kind if nodes else key
    return getattr(thing, "__name__", type(thing).__name__)

"""Inspects, Routes, Shows and Credits of hand-written models."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any

import numpy as np

from sleuth.adapters.numpy import flow
from sleuth.adapters.numpy.bench import NumpyBench, open_bench
from sleuth.adapters.numpy.describing import describe
from sleuth.adapters.numpy.forms import understood
from sleuth.adapters.numpy.inspecting import pictures
from sleuth.adapters.numpy.inspecting.forward_pass import passage
from sleuth.core.contract.adapter import Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import ClassActivation, Kernels, Maps, Node, Part, Passage, Route
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Parts, Subject

SEED = 0


class NumpyInspects(Inspects, Routes, Shows, Credits):
    def parts(self, model: Any) -> tuple[Part, ...]:
        subject = understood(Subject(model, None))
        told = describe(subject)
        root = getattr(subject.model, "root", None) or subject.model
        found: list[tuple[str, str, str, Mapping[str, Any]]] = []
        if not any(layer.path == "" for layer in told.layers):
            found.append(("", type(root).__name__, "container", {}))
        found += [(layer.path, layer.kind, layer.family, layer.settings) for layer in told.layers]
        return tuple(_part(path, kind, family, settings, told) for path, kind, family, settings in found)

    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        kind = np.dtype(dtype or _dtype_of(model))
        values = np.random.default_rng(SEED).normal(size=shape) if kind.kind == "f" else np.zeros(shape)
        return values.astype(kind)

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return random_preserved((source,))

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        return passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        went = passage(model, inputs)
        if went.failure is not None:
            raise UnusableInput(f"the forward pass fails: {went.failure.message}")
        with open_bench(understood(Subject(model, None))) as bench:
            assert isinstance(bench, NumpyBench)
            bench.set_training(False)
            told = flow.flow(bench, Parts(inputs, None, inputs))
        visits = {visit.path: i for i, visit in enumerate(went.visits)}
        nodes = tuple(Node(o.name, o.family, o.shape, visits.get(o.layer, 0), o.sources) for o in told.operations)
        return Route(nodes, went, told.outputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        return pictures.kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        return pictures.maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        return pictures.class_activation(model, inputs, layer, target)


def _part(path: str, kind: str, family: str, settings: Any, told: Any) -> Part:
    own = [p for p in told.parameters if p.layer == path]
    fresh = [p for p in own if p.tied_to is None]
    return Part(
        path,
        kind,
        family,
        settings,
        {p.path.rpartition(".")[2]: p.shape for p in own},
        sum(prod(p.shape) for p in fresh),
        sum(prod(p.shape) for p in fresh if p.trainable),
        tied={p.path.rpartition(".")[2]: p.tied_to for p in own if p.tied_to is not None},
    )


def _dtype_of(model: Any) -> str:
    told = describe(understood(Subject(model, None)))
    return next((p.dtype for p in told.parameters if "float" in p.dtype), "float64")

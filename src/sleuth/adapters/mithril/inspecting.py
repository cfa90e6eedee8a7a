"""Looking at a Mithril model for its own sake: its layers, and the shapes of one forward pass."""

import time as clock
from contextlib import AbstractContextManager
from math import prod
from typing import Any

import numpy as np

from sleuth.adapters.mithril import arrays, describing
from sleuth.adapters.mithril.failure import explain
from sleuth.adapters.mithril.given_model import Given, resolve
from sleuth.adapters.mithril.graph import Group
from sleuth.adapters.mithril.graph_walk import Walk, walk
from sleuth.adapters.mithril.key_roles import Wiring, feed_inputs, wire
from sleuth.core.contract.adapter import Inspects
from sleuth.core.contract.inspection import Door, Part, Passage, Visit
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject

SEED = 0
PRODUCTS = ("matrix_multiplication", "linear", "linear_bias")
REPEATS = 5


class MithrilInspects(Inspects):
    def parts(self, model: Any) -> tuple[Part, ...]:
        given = _resolved(model)
        described = describing.describe(given)
        found = [Part("", type(given.physical).__name__, "container")]
        for layer in described.layers:
            own = {p.path: p.shape for p in described.parameters if p.layer == layer.path}
            count = sum(prod(shape) for shape in own.values())
            trained = 0 if given.physical.inference else count
            found += _holders(layer.path, found)
            found.append(Part(layer.path, layer.kind, layer.family, layer.settings, own, count, trained))
        return tuple(found)

    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        backend = _resolved(model).physical.backend
        kind = np.dtype(dtype or "float32")
        values = np.random.default_rng(SEED).normal(size=shape) if kind.kind == "f" else np.zeros(shape)
        return values.astype(kind) if backend.backend_type == "numpy" else backend.array(values.astype(kind))

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return random_preserved((source,))

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        given = _resolved(model)
        wiring = wire(given.graph, None)
        values = {**given.params, **given.state, **feed_inputs(wiring, inputs)}
        with np.errstate(all="ignore"):
            done = walk(given.graph, values, wiring.outputs)
            seconds = min(_timed(given, values, wiring) for _ in range(REPEATS)) if time and done.error is None else None
        visits, counted = _visits(given, wiring, done, seconds)
        failure = None if done.error is None else explain(done.error, "forward", done.node, done.values)
        return Passage(visits, failure, counted)


def visited(given: Given, wiring: Wiring, done: Walk) -> Passage:
    visits, counted = _visits(given, wiring, done, None)
    return Passage(visits, None, counted)


def _resolved(model: Any) -> Given:
    with random_preserved((model,)):
        return resolve(model, Subject(model, None))


def _holders(path: str, found: list[Part]) -> list[Part]:
    """Models that hold a layer and were not listed before."""
    steps = path.split(".")[:-1]
    paths = [".".join(steps[: i + 1]) for i in range(len(steps))]
    known = {part.path for part in found}
    return [Part(p, "Model", "container") for p in paths if p not in known]


def _timed(given: Given, values: dict[str, Any], wiring: Wiring) -> float:
    began = clock.perf_counter()
    walk(given.graph, values, wiring.outputs)
    return clock.perf_counter() - began


def _visits(given: Given, wiring: Wiring, done: Walk, seconds: float | None) -> tuple[tuple[Visit, ...], bool]:
    """The model as a whole, then its layers; costs of layers are not told apart in time."""
    groups = [g for g in given.graph.groups if any(node in done.made or node is done.node for node in g.nodes)]
    wanted = given.graph.behind(wiring.outputs)
    inside = [_visit(given, group, done) for group in groups if group.output in wanted]
    counted = not any(group.family in ("conv", "attention", "recurrent") for group in groups)
    whole = Visit(
        "",
        None,
        _doors(wiring.inputs, done),
        _doors(wiring.outputs, done),
        sum(visit.flops for visit in inside),
        seconds,
        done.error is None,
    )
    return (whole, *inside), counted


def _visit(given: Given, group: Group, done: Walk) -> Visit:
    fed = tuple(k for k in group.given() if k not in given.params and k not in given.graph.constants)
    flops = 0
    for node in group.nodes:
        if node.formula in PRODUCTS and node.key in done.values:
            left = done.values[node.sources.get("left", node.sources.get("input", ""))]
            flops += 2 * prod(done.values[node.key].shape) * left.shape[-1]
    finished = group.output in done.values
    return Visit(group.path, 0, _doors(fed, done), _doors((group.output,), done), flops, None, finished)


def _doors(keys: tuple[str, ...], done: Walk) -> tuple[Door, ...]:
    seen = [(key, done.values[key]) for key in keys if arrays.is_array(done.values.get(key))]
    return tuple(Door(key, tuple(array.shape), arrays.dtype(array)) for key, array in seen)

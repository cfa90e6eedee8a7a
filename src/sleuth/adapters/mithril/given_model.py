"""What the user hands over as a model: a physical model or a logical one with a backend, with or without parameters."""

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.adapters.mithril import arrays, shapes
from sleuth.adapters.mithril.graph import Graph
from sleuth.adapters.mithril.key_roles import feed, wire
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject, take_apart

PHYSICAL = ("evaluate", "randomize_params", "shapes", "input_keys", "output_keys", "summary")
LOGICAL = ("expose_keys", "set_shapes", "input_keys", "shapes", "summary")
BACKEND = ("randn", "array", "set_seed", "is_manualgrad")
HOW = "give sleuth.examine((physical_model, params), …), or (logical_model, backend, params)."


@dataclass(frozen=True)
class Given:
    """A compiled model with its parameters; `drawn`: sleuth drew them, with randomize_params()."""

    physical: Any
    graph: Graph
    params: dict[str, Any]
    state: dict[str, Any]
    drawn: bool = False


def is_physical(thing: Any) -> bool:
    return not isinstance(thing, type) and _has(thing, PHYSICAL) and hasattr(thing, "flat_graph")


def is_logical(thing: Any) -> bool:
    return not isinstance(thing, type) and _has(thing, LOGICAL) and hasattr(thing, "conns") and not is_physical(thing)


def _has(thing: Any, names: tuple[str, ...]) -> bool:
    """Asked of the class: properties of a half-built model may raise."""
    return all(hasattr(type(thing), name) for name in names)


def is_model(thing: Any) -> bool:
    first = thing[0] if isinstance(thing, tuple) and 1 <= len(thing) <= 4 else thing
    return is_physical(first) or is_logical(first)


def resolve(thing: Any, subject: Subject) -> Given:
    """A logical model is compiled for the shapes of the subject's data. Numbers are drawn where no parameters were given."""
    parts = list(thing) if isinstance(thing, tuple) else [thing]
    model, rest = parts[0], parts[1:]
    backend = next((p for p in rest if _has(p, BACKEND)), None)
    dicts = [p for p in rest if isinstance(p, Mapping)]
    if is_logical(model):
        if backend is None:
            raise UnusableInput(f"a logical Mithril model cannot be run without a backend; {HOW}")
        model = compiled(model, backend, subject)
    graph = Graph(model)
    params = dict(dicts[0]) if dicts else None
    missing = [] if params is None else sorted(set(graph.parameters) - set(params))
    if missing:
        raise UnusableInput(f"the parameters lack {', '.join(missing)}, which the model is computed from; {HOW}")
    state = dict(dicts[1]) if len(dicts) > 1 else dict(model.initial_state_dict) if model.state_keys else {}
    return Given(model, graph, params if params is not None else _drawn(model), state, drawn=params is None)


def _drawn(physical: Any) -> dict[str, Any]:
    try:
        return dict(physical.randomize_params())
    except Exception as error:
        raise UnusableInput(
            f"randomize_params() cannot draw parameters: {error} Compile with the shapes of the data, "
            "ml.compile(model, backend, shapes={…}), or give the parameters: (physical_model, params)."
        ) from error


def compiled(logical: Any, backend: Any, subject: Subject) -> Any:
    """As ml.compile would, on a copy and without jit: each function is to be heard."""
    compile_ = sys.modules["mithril"].compile

    def attempt(shapes_: Mapping[str, Any] | None) -> Any:
        return compile_(copy.deepcopy(logical), backend, shapes=shapes_, jit=False)

    try:
        free = attempt(None)
    except Exception as error:
        raise UnusableInput(f"the model cannot be compiled: {type(error).__name__}: {error}") from error
    wanted = _shapes(free, subject)
    try:
        return attempt(wanted)
    except Exception as error:
        told = shapes.explain(error, Graph(free), dict(free.shapes), wanted)
        raise UnusableInput(f"the model cannot be compiled for these data: {told}") from error


def _shapes(physical: Any, subject: Subject) -> dict[str, list[int | None]]:
    """Of the data, by key, whatever the number of samples."""
    train = subject.train
    if train is None or (not isinstance(train, tuple | list | Mapping) and iter(train) is train):
        return {}  # what can be read only once is left to the training
    whole = isinstance(train, Mapping) or (isinstance(train, tuple) and any(arrays.is_array(part) for part in train))
    batch = take_apart(train if whole else next(iter(train)), subject.split)
    fed = feed(wire(Graph(physical), subject.loss), batch)
    return {key: [None, *array.shape[1:]] for key, array in fed.items() if arrays.is_array(array)}

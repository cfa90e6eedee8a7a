"""Computing a compiled model function by function, as its generated code does, so that every value in it can be seen."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sleuth.adapters.mithril.graph import Graph, Node
from sleuth.core.errors import Unsupported

VARIADIC = 0x04  # of a code object's flags: it takes *args


@dataclass(frozen=True)
class Walk:
    """Values by key, as far as they could be computed; `node` is the function that raised `error`."""

    values: dict[str, Any]
    made: list[Node] = field(default_factory=list)
    node: Node | None = None
    error: Exception | None = None


def walk(graph: Graph, given: Mapping[str, Any], until: Iterable[str] | None = None) -> Walk:
    """`given`: parameters, data and state by key. What a missing key is needed for is left out."""
    values = {**graph.constants, **given}
    wanted = None if until is None else graph.behind(until)
    done = Walk(values)
    for node in graph.nodes:
        if (wanted is not None and node.key not in wanted) or any(key not in values for key in node.sources.values()):
            continue
        function = function_of(graph.physical.backend, node.formula)
        try:
            values[node.key] = call(function, {name: values[key] for name, key in node.sources.items()}, graph.physical.backend)
        except Exception as error:
            return Walk(values, done.made, node, error)
        done.made.append(node)
    return done


def function_of(backend: Any, formula: str) -> Callable[..., Any]:
    found = getattr(backend, "op_function_dict", {}).get(formula) or getattr(backend, "registered_primitives", {}).get(formula)
    if found is None or not hasattr(found, "__code__"):
        raise Unsupported(f"the {backend.backend_type} backend has no Python function {formula}: values inside stay unseen")
    return found


def call(function: Callable[..., Any], named: Mapping[str, Any], backend: Any) -> Any:
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    keywords = {name: value for name, value in named.items() if name in names}
    if function.__name__ in getattr(backend, "array_creation_funcs", ()):
        keywords |= {k: v for k, v in _creation(backend).items() if k in names}
    if "cache" in names:
        keywords["cache"] = {}
    if not code.co_flags & VARIADIC:
        return function(**keywords)
    loose = [value for name, value in named.items() if name not in names]
    first = [keywords.pop(name) for name in names[: code.co_argcount] if name in keywords]
    return function(*first, *loose, **keywords)


def _creation(backend: Any) -> dict[str, Any]:
    return {"default_dtype": getattr(backend.default_dtype, "name", None), "device": backend.device}

"""A checkpoint that was refused: what it holds against what the model has, read from the call that raised."""

import ast
import linecache
from types import TracebackType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from sleuth.core.location import Location
from sleuth.core.observation import Entry, Misfit
from sleuth.core.place import innermost

LOADS = nn.Module.load_weights.__code__


def read_misfit(error: BaseException) -> Misfit | None:
    """None where no weights were being loaded, or MLX found nothing wrong with them."""
    found = _loading(error.__traceback__)
    model, weights = (found or {}).get("self"), (found or {}).get("weights")
    if not isinstance(error, ValueError) or not isinstance(model, nn.Module) or not isinstance(weights, list):
        return None
    own = {name: tuple(array.shape) for name, array in tree_flatten(model.parameters())}
    held = {str(name): tuple(array.shape) if isinstance(array, mx.array) else None for name, array in weights}
    both = [name for name in own if name in held]
    reshaped = [name for name in both if held[name] != own[name]]
    place = innermost(error.__traceback__)
    return Misfit(
        "names",
        type(model).__name__,
        missing=tuple(Entry(name, own[name]) for name in own if name not in held),
        unexpected=tuple(Entry(name, held[name]) for name in held if name not in own),
        reshaped=tuple((Entry(name, held[name]), Entry(name, own[name])) for name in reshaped),
        fitting=len(both) - len(reshaped),
        verb="load_weights",
        pairs=True,
        location=place,
        **_words(place),
    )


def _loading(trace: TracebackType | None) -> dict[str, Any] | None:
    while trace is not None:
        if trace.tb_frame.f_code is LOADS:
            return dict(trace.tb_frame.f_locals)
        trace = trace.tb_next
    return None


def _words(place: Location | None) -> dict[str, str]:
    """What the user's line calls the model and the weights."""
    text = "" if place is None else linecache.getline(place.file, place.line).strip()
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # a part of a longer statement
        return {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="load_weights"), args=args):
                return {"owner": ast.unparse(owner)} | ({"state": f"dict({ast.unparse(args[0])})"} if args else {})
    return {}

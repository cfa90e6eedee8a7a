"""The line that gave a layer its size: through the parameters of the user's own functions up to whoever calls them."""

import ast
import inspect
from typing import Any

from torch import nn

from sleuth.adapters.torch.failures.scene import SIZES
from sleuth.adapters.torch.failures.source import bound, call_at, tree_of
from sleuth.adapters.torch.watching.created_at import Made, made
from sleuth.core.location import Location, Spot, locate

INPUTS = ("in_features", "in_channels", "input_size", "num_features", "normalized_shape", "num_channels", "embed_dim")
OUTPUTS = ("out_features", "out_channels")


def given_at(layer: nn.Module | None, *words: str) -> Location | None:
    """Where the first of these settings that the layer has got its value; None where it was not seen being made."""
    word = next((w for w in words if hasattr(layer, w)), None)
    found = made(layer) if layer is not None else None
    return None if found is None or word is None else argument_line(found, type(layer), word)


def argument_line(found: Made, kind: type, word: str) -> Location | None:
    """Where an argument that a thing was made with got its value; where that is not known, the line that made it."""
    place, names, inner = found.location, _settings(kind), None
    expected = kind.__name__
    for spot in found.spots:
        call, scope = call_at(spot)
        if call is None or expected not in ("__init__", _name(call.func)):
            return place
        value = _argument(call, names, word)
        if value is None:
            return _default(inner, word) or place
        place = locate(spot.code.co_filename, value.lineno)
        if not isinstance(value, ast.Name):
            return place
        if not isinstance(scope, ast.FunctionDef) or value.id not in _parameters(scope):
            return _bound_at(spot, value.id) or place
        names, word, expected, inner = _parameters(scope), value.id, scope.name, (spot, scope)
    return place


def last_with(model: nn.Module | None, outputs: int) -> nn.Module | None:
    """The layer that gives the model so many outputs."""
    layers = list(model.modules()) if model is not None else []
    return next((m for m in reversed(layers) if any(getattr(m, word, None) == outputs for word in OUTPUTS)), None)


def _settings(kind: type) -> list[str]:
    named = inspect.signature(kind).parameters.values()
    found = [p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    return found or [name for names in SIZES for name in names if "input_size" in names]  # recurrent layers take anything


def _argument(call: ast.Call, names: list[str], word: str) -> ast.expr | None:
    """None: it is not given, or among others that are only unpacked there."""
    for keyword in call.keywords:
        if keyword.arg == word:
            return keyword.value
    place = names.index(word) if word in names else len(call.args)
    given = call.args[: place + 1]
    return given[place] if place < len(given) and not any(isinstance(a, ast.Starred) for a in given) else None


def _parameters(scope: ast.FunctionDef) -> list[str]:
    """As a caller counts them."""
    names = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args)]
    own = names[1:] if names[:1] in (["self"], ["cls"]) else names
    return own + [a.arg for a in scope.args.kwonlyargs]


def _default(inner: tuple[Spot, ast.FunctionDef] | None, word: str) -> Location | None:
    """A parameter that nobody gives has its value from the line that names it."""
    if inner is None:
        return None
    spot, scope = inner
    every: list[Any] = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
    line = next((a.lineno for a in every if a.arg == word), None)
    return None if line is None else locate(spot.code.co_filename, line)


def _bound_at(spot: Spot, name: str) -> Location | None:
    """The line that computes a name which is read here only. What others read too is changed where this one is made of it."""
    tree = tree_of(spot.code.co_filename)
    nodes = list(ast.walk(tree)) if tree is not None else []
    read = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    lines = [n.lineno for n in nodes if isinstance(n, ast.stmt) and name in bound(n)]
    defined = [n.lineno for n in nodes if isinstance(n, ast.FunctionDef) and n.name == name]
    found = lines + defined
    return locate(spot.code.co_filename, found[0]) if len(read) == 1 and len(found) == 1 else None


def _name(function: ast.expr) -> str | None:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)

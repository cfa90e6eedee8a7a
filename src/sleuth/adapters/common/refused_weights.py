"""Weights by name that a model refused: what differs, and what the user's line calls them."""

import ast
import linecache
from collections.abc import Mapping
from typing import Any

from sleuth.core.location import Location
from sleuth.core.observation import Entry

Shapes = Mapping[str, tuple[int, ...] | None]


def differences(own: Shapes, held: Shapes) -> dict[str, Any]:
    """Fields of a Misfit: what the model has against what was to be loaded."""
    both = [name for name in own if name in held]
    reshaped = [name for name in both if held[name] != own[name]]
    return {
        "missing": tuple(Entry(name, own[name]) for name in own if name not in held),
        "unexpected": tuple(Entry(name, held[name]) for name in held if name not in own),
        "reshaped": tuple((Entry(name, held[name]), Entry(name, own[name])) for name in reshaped),
        "fitting": len(both) - len(reshaped),
    }


def users_words(place: Location | None, verb: str) -> dict[str, str]:
    """Fields of a Misfit: the owner and the state, where the user's line says `owner.verb(state)`."""
    text = "" if place is None else linecache.getline(place.file, place.line).strip()
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # a part of a longer statement
        return {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attribute), args=args) if attribute == verb:
                return {"owner": ast.unparse(owner)} | ({"state": ast.unparse(args[0])} if args else {})
    return {}

"""Names, keys and arguments that do not exist: errors of Python's own."""

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene, count, sides

SHOWN = 6


def _key(scene: Scene) -> Explained | None:
    key = scene.error.args[0] if scene.error is not None and scene.error.args else None
    if isinstance(key, torch.Tensor):
        return Explained("key", "a key that is there", "a tensor as key", "look up by plain numbers: table[int(i)]")
    holders = ((name, v) for name, v in scene.values.items() if isinstance(v, Mapping) and v and key not in v)
    name, keys = next(((name, [repr(k) for k in v]) for name, v in holders), (None, []))
    if name is None:
        return Explained("key", f"the key {key!r}", "no such key", f"print the keys that are there; {key!r} is not among them")
    near = difflib.get_close_matches(repr(key), keys, 1)
    cure = f"write {name}[{near[0]}]" if near else f"use one of its keys, such as {name}[{keys[0]}], or put {key!r} in"
    return Explained("key", f"the key {key!r} in {name}", f"only {_listed(keys)}", f"{cure}: {name} has {_listed(keys)}")


def _attribute(scene: Scene) -> Explained | None:
    error = scene.error
    if not isinstance(error, AttributeError) or not isinstance(error.name, str):
        return None
    thing, name = error.obj, error.name
    if isinstance(thing, tuple | list | dict | str | int | float) or thing is None:
        return None  # what is no tensor has a table of its own
    kind = type(thing).__name__
    if isinstance(thing, nn.Module):
        there = sorted({*thing._modules, *thing._parameters, *thing._buffers, *vars(thing)} - set(vars(nn.Module())))
        holder = "self" if thing is scene.module or scene.values.get("self") is thing else kind
    else:
        there = [n for n in dir(thing) if not n.startswith("_")]
        holder = next((n for n, v in scene.values.items() if v is thing), kind)
    near = difflib.get_close_matches(name, there, 1, 0.5)
    cure = f"write {holder}.{near[0]}" if near else f"set {holder}.{name} before it is used"
    few = 0 < len(there) <= SHOWN
    has = f"only {_listed(there)}" if few else f"nothing of that name in {kind}"
    return Explained(
        "name", f"{holder}.{name}", has, cure + (f", or use one that is there: {_listed(there)}" if few and not near else "")
    )


def _name(scene: Scene) -> Explained | None:
    if not isinstance(scene.error, NameError) or not scene.error.name:
        return None
    name, there = scene.error.name, [n for n in scene.values if not n.startswith("_")]
    near = difflib.get_close_matches(name, there, 1, 0.5)
    cure = f"write {near[0]}" if near else "define it before this line"
    return Explained("name", name, f"only {_listed(there)}", f"{cure}: here only {_listed(there)} are known")


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _missing(match: re.Match[str], scene: Scene) -> Explained:
    names = match[1]
    if scene.module is None:
        rest = ", ".join(f"{n}=…" for n in _plain(names).split(", "))
        advice = (
            f"a loss is called as loss(output, target); fix the rest before: lambda output, target: f(output, target, {rest})"
        )
        return Explained("arguments", "loss(output, target)", f"a function that also wants {names}", advice)
    takes = _signature(scene.module.forward)
    given = count(len(scene.given), "argument")
    if scene.path:
        kind = type(scene.module).__name__
        advice = f"hand over {names} as well: self.{scene.path}({takes}), or give it a default in {kind}.forward"
        return Explained("arguments", f"forward({takes})", given, advice)
    advice = (
        f"let the batch bring {names} too, such as ((x, {_plain(names)}), y), or give it a default in forward; a tuple of inputs "
        "becomes forward's arguments, a dict its keywords, and split= says what is input and what is target"
    )
    return Explained("arguments", f"forward({takes})", given, advice)


def _too_many(match: re.Match[str], scene: Scene) -> Explained:
    takes, given = int(match[1]), int(match[2])
    if scene.module is None:
        advice = "a loss is called as loss(output, target): write lambda output, target: …"
        return Explained(
            "arguments", "a function of (output, target)", f"{count(takes, 'argument')} taken, {given} given", advice
        )
    names = _signature(scene.module.forward)
    shapes = ", ".join(sides(g.shape) if isinstance(g, torch.Tensor) else type(g).__name__ for g in scene.given)
    if scene.path:
        advice = f"call it with what it takes: self.{scene.path}({names})"
    else:
        advice = (
            f"take all {given - 1} in forward, or pass on fewer: everything but the last entry of a batch is input, unless "
            f"split=lambda batch: (batch[0], batch[-1]) says otherwise"
        )
    return Explained("arguments", f"forward({names})", f"{count(given - 1, 'argument')}: {shapes}", advice)


def _keyword(match: re.Match[str], scene: Scene) -> Explained:
    takes = _signature(scene.module.forward) if scene.module is not None else "…"
    return Explained(
        "arguments", f"forward({takes})", f"an argument named {match[1]}", f"remove {match[1]}=…: its forward takes ({takes})"
    )


def _signature(function: Any) -> str:
    return ", ".join(n for n, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD)


def _plain(names: str) -> str:
    return names.replace("'", "").replace(" and ", ", ")


def _unpack(match: re.Match[str], scene: Scene) -> Explained:
    wants = int(match[1])
    text = scene.location.text if scene.location is not None else ""
    source = re.search(r"=\s*(\w+)\.(?:shape|size\(\))", text)
    thing = scene.values.get(source[1]) if source else None
    if isinstance(thing, torch.Tensor) and source:
        name = source[1]
        cure = f"{name}.unsqueeze(1)" if thing.dim() < wants else f"{name}.flatten({wants - 1})"
        shape = f"{count(thing.dim(), 'axis')} (shape {sides(thing.shape)})"
        return Explained(
            "shape", f"{name} with {count(wants, 'axis')}", shape, f"give {name} {wants} axes ({cure}), or unpack {thing.dim()}"
        )
    got = match[2] if match.lastindex and match.lastindex > 1 else "more"
    return Explained(
        "value", f"{wants} values", f"{got} values", f"give the left side as many names as there are values on the right ({text})"
    )


def _truth(match: re.Match[str], scene: Scene) -> Explained:
    if scene.building is not None:
        name = scene.building
        advice = f"build the loss first, then call it: {name}()(output, target), or loss={name}() with its brackets"
        return Explained("type", f"an instance, {name}()", f"the class {name} called with output and target", advice)
    return Explained(
        "value", "one yes or no", "a tensor of many", "say which: (x > 0).any(), .all(), or torch.where(…) for each value"
    )


def explain_python(error: Exception, scene: Scene) -> Explained | None:
    match error:
        case KeyError():
            return _key(scene)
        case AttributeError():
            return _attribute(scene)
        case NameError():
            return _name(scene)
    return None


PYTHON = Patterns(
    (
        (r"missing \d+ required positional arguments?: (.+)", _missing),
        (r"takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given", _too_many),
        (r"got an unexpected keyword argument '(\w+)'", _keyword),
        (r"not enough values to unpack \(expected (\d+), got (\d+)\)", _unpack),
        (r"too many values to unpack \(expected (\d+)\)", _unpack),
        (r"Boolean value of Tensor with more than one value is ambiguous", _truth),
    )
)

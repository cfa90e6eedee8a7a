"""Which model is being trained: the outermost modules that hold what an optimiser steps."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.user_variables import variables

# Names are a kindness to the reader: the search for them ends after this time.
NAMING_SECONDS = 0.02


def stepped_by(optimisers: Iterable[Optimizer]) -> dict[int, torch.Tensor]:
    # One that wraps another may never have been set up as an optimiser itself.
    groups = [group for optimiser in optimisers for group in getattr(optimiser, "param_groups", ())]
    return {id(p): p for group in groups for p in group["params"]}


def find_model(
    optimisers: Sequence[Optimizer], frame: FrameType | None, called: nn.Module | None = None
) -> tuple[nn.Module, str]:
    """The model, and what to call it. Several models, and tensors that belong to none, come as one.

    `called`: the loop does not call the outermost module, but this one in it."""
    return model_of(stepped_by(optimisers), frame, called)


def model_of(
    wanted: Mapping[int, torch.Tensor], frame: FrameType | None, called: nn.Module | None = None
) -> tuple[nn.Module, str]:
    tops = _cover(wanted, _outermost())
    parts = [part for top in tops for part in _callable_parts(top, wanted, called)]
    held = {id(p) for part in parts for p in _parameters(part)}
    loose = [p for number, p in wanted.items() if number not in held]
    if len(parts) == 1 and not loose:
        return parts[0], type(parts[0]).__name__
    names = _names([*parts, *loose], tops, frame)
    models = {names[id(part)]: part for part in parts}
    tensors = {names[id(p)]: p for p in loose}
    return Several(models, tensors), "-".join(list(models) or list(tensors)[:3])


def name_of(model: nn.Module, frame: FrameType | None) -> str:
    """As the user calls it."""
    return _names([model], [], frame)[id(model)]


def _outermost() -> list[nn.Module]:
    # The type is asked, not the object: a proxy would answer for what it stands for, and be woken by it.
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    modules = [m for m in modules if "_modules" in m.__dict__ and not isinstance(m, Several)]
    inner = {id(child) for module in modules for child in _children(module)}
    return [module for module in modules if id(module) not in inner]


def _children(module: nn.Module) -> Iterator[nn.Module]:
    """Those in a plain list as well: the model knows them, though torch does not."""
    yield from (child for child in module.__dict__["_modules"].values() if child is not None)
    for value in list(module.__dict__.values()):
        inside = value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,)
        yield from (thing for thing in inside if issubclass(type(thing), nn.Module))


def _parameters(module: nn.Module) -> Iterator[torch.Tensor]:
    waiting, seen = [module], {id(module)}
    while waiting:
        one = waiting.pop()
        yield from (p for p in one.__dict__.get("_parameters", {}).values() if p is not None)
        fresh = [child for child in _children(one) if id(child) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh


def _cover(wanted: Iterable[int], modules: Iterable[nn.Module]) -> list[nn.Module]:
    """As few modules as hold all of it; of equals the one with the least beside it."""
    left = set(wanted)
    holding = {id(m): {id(p) for p in _parameters(m)} for m in modules}
    candidates = [m for m in modules if holding[id(m)] & left]
    chosen: list[nn.Module] = []
    while candidates and left:
        best = max(candidates, key=lambda m: (len(holding[id(m)] & left), -len(holding[id(m)])))
        chosen.append(best)
        left -= holding[id(best)]
        candidates = [m for m in candidates if holding[id(m)] & left]
    return chosen


def _callable_parts(module: nn.Module, wanted: Any, called: nn.Module | None = None) -> Iterator[nn.Module]:
    """A module without a forward is a place to keep models in, and so is one of which the loop calls a part: those of them
    count that are trained."""
    around = called is not None and called is not module and any(m is called for m in module.modules())
    if not around and _has_forward(module):
        yield module
        return
    if called is not None and around:
        own = {id(p) for p in _parameters(called)}
        if own.issuperset(id(p) for p in _parameters(module) if id(p) in wanted):
            yield called
            return
    for child in dict.fromkeys(_children(module)):
        if any(id(p) in wanted for p in _parameters(child)):
            yield from _callable_parts(child, wanted, called)


def _has_forward(module: nn.Module) -> bool:
    """One that only hands on to nn.Module's, which raises, is none: LightningModule has such a one."""
    if "forward" in module.__dict__:
        return True
    forward = type(module).forward
    names = getattr(getattr(forward, "__code__", None), "co_names", ())
    return forward is not nn.Module.forward and names != ("super", "forward")


def _names(things: Sequence[Any], tops: Iterable[nn.Module], frame: FrameType | None) -> dict[int, str]:
    """As the user calls them; numbers where that is not to be found out."""
    paths = {id(m): path for top in tops for path, m in top.named_modules() if path}
    paths |= {id(p): path for top in tops for path, p in top.named_parameters()}
    for variable in variables(frame, NAMING_SECONDS):
        paths.setdefault(id(variable.value), variable.name.removeprefix("self."))
    names: dict[int, str] = {}
    for number, thing in enumerate(things):
        plain = paths.get(id(thing)) or (f"{type(thing).__name__}{number}" if isinstance(thing, nn.Module) else f"tensor{number}")
        # A dot would read as a step down into the module.
        plain = "".join(c if c.isalnum() or c == "_" else "_" for c in plain).strip("_") or f"part{number}"
        names[id(thing)] = plain if plain not in names.values() else f"{plain}_{number}"
    return names

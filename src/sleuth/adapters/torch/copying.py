"""Copies of a model that stand on their own. `copy.deepcopy` copies no function: a lambda that the model keeps, and a hook, would
go on computing with the layers of the original."""

import copy
from collections.abc import Iterable
from types import CellType, FunctionType
from typing import Any, TypeVar

from torch import nn

from sleuth.core.runtime.place import SLEUTH

Thing = TypeVar("Thing")


def deep_copy(thing: Thing, memo: dict[int, Any] | None = None) -> Thing:
    """`thing`: a model, or a tuple with models. Raises what `copy.deepcopy` raises."""
    known: dict[int, Any] = {} if memo is None else memo
    copied = copy.deepcopy(thing, known)
    for part in copied if isinstance(copied, tuple) else (copied,):
        for module in part.modules() if isinstance(part, nn.Module) else ():
            _rebind(vars(module), known)
    return copied


def _rebind(holder: Any, memo: dict[int, Any]) -> None:
    """The functions in it get the copies of what they hold. Hooks lie in dictionaries, and functions may in lists."""
    for key, value in _entries(holder):
        if isinstance(value, FunctionType) and not value.__code__.co_filename.startswith(SLEUTH):
            rebound = _rebound(value, memo)
            if rebound is not value:
                holder[key] = rebound
        elif type(value) in (list, dict) or (isinstance(value, dict) and str(key).endswith("_hooks")):
            _rebind(value, memo)


def _entries(holder: Any) -> Iterable[tuple[Any, Any]]:
    """Of itself it holds nothing but by way of a module, which has a turn of its own."""
    found = holder.items() if isinstance(holder, dict) else enumerate(holder)
    return [(key, value) for key, value in found if value is not holder]


def _rebound(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    cells = function.__closure__ or ()
    held = [(_content(cell), memo.get(id(_content(cell)))) for cell in cells]
    defaults = [(value, memo.get(id(value))) for value in function.__defaults__ or ()]
    if all(mine is None for _, mine in (*held, *defaults)):
        return function
    closure = tuple(cell if mine is None else CellType(mine) for cell, (_, mine) in zip(cells, held, strict=True))
    given = tuple(value if mine is None else mine for value, mine in defaults)
    rebound = FunctionType(function.__code__, function.__globals__, function.__name__, given or None, closure or None)
    rebound.__kwdefaults__, rebound.__qualname__ = function.__kwdefaults__, function.__qualname__
    rebound.__dict__.update(function.__dict__)
    return rebound


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return None

"""How a model was called: its arguments taken apart into inputs and targets, and put together again for other batches."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.reading.positions import made_of
from sleuth.core.runtime.tree import IsArray, leaves, map_arrays
from sleuth.core.subject import TARGET_KEYS


@dataclass(frozen=True)
class Slot:
    name: str  # of the argument, and the path in it


@dataclass(frozen=True)
class CallForm:
    """The arguments of a call with slots in the place of arrays: what else stands there goes into every call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[str, ...]
    targets: tuple[str, ...]

    def apart(self, args: Sequence[Any], kwargs: Mapping[str, Any], is_array: IsArray, forward: Any) -> tuple[Any, Any] | None:
        """(inputs, target) of another call; None where that is made otherwise."""
        names = names_of(args, kwargs, is_array, forward)
        if names is None or set(names) != {*self.inputs, *self.targets} or not self._alike(args, kwargs, is_array):
            return None
        return self._side(self.inputs, names), self._side(self.targets, names)

    def _alike(self, args: Sequence[Any], kwargs: Mapping[str, Any], is_array: IsArray) -> bool:
        blank: Callable[[Any], Any] = lambda _: Slot("")  # noqa: E731
        mine = map_arrays((tuple(self.args), dict(self.kwargs)), blank, lambda thing: isinstance(thing, Slot))
        return bool(mine == map_arrays((tuple(args), dict(kwargs)), blank, is_array))

    def _side(self, wanted: tuple[str, ...], found: Mapping[str, Any]) -> Any:
        if len(wanted) == 1:
            return found[wanted[0]]
        return {name: found[name] for name in wanted} if wanted else None

    def together(self, inputs: Any, target: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments again."""
        known = {self.inputs[0]: inputs} if len(self.inputs) == 1 else dict(inputs or {})
        known |= {self.targets[0]: target} if len(self.targets) == 1 else dict(target or {})
        filled = map_arrays((self.args, dict(self.kwargs)), lambda slot: known[slot.name], lambda t: isinstance(t, Slot))
        return filled[0], filled[1]


def names_of(args: Sequence[Any], kwargs: Mapping[str, Any], is_array: IsArray, forward: Any) -> dict[str, Any] | None:
    """Every array that was given, by the name of its argument. None: two have the same name."""
    names = _parameters(forward)
    given = {**{names[i] if i < len(names) else str(i): a for i, a in enumerate(args)}, **kwargs}
    found = dict(leaves(given, is_array))
    return found if len(given) == len(args) + len(kwargs) else None


def _parameters(forward: Any) -> list[str]:
    try:
        found = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def form_of(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_array: IsArray,
    forward: Any,
    compared: Sequence[np.ndarray],
    values: Callable[[Any], np.ndarray],
) -> CallForm | None:
    """`compared`: the targets that loss functions were given while the model ran. An argument that one of them was made of is a
    target; so is one with such a name where none was heard."""
    names = names_of(args, kwargs, is_array, forward)
    if not names:
        return None
    arrays = {name: values(a) for name, a in names.items()}
    targets = {t for part in compared if (t := _target(part, arrays)) is not None}
    if not compared:
        targets = {name for name in names if name in TARGET_KEYS and name != next(iter(names))}
    inputs = tuple(name for name in names if name not in targets)
    if not inputs:
        return None
    order = iter(names)  # the same order; the same array may be given twice, as where labels are the inputs
    places = map_arrays((tuple(args), dict(kwargs)), lambda _: Slot(next(order)), is_array)
    return CallForm(places[0], places[1], inputs, tuple(name for name in names if name in targets))


def _target(part: np.ndarray, arrays: Mapping[str, np.ndarray]) -> str | None:
    """By its name where several would do: labels may be a copy of the inputs. What comes first is an input."""
    found = made_of(part, arrays)
    named = [name for name in found if name in TARGET_KEYS]
    first = next(iter(arrays))
    return next(iter([*named, *(name for name in found if name != first)]), None)

"""In which mode the layers of a watched model are, and the calls of it that train nothing. Of Flax NNX only: elsewhere a mode is
an argument, and leaves no trace."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from sleuth.adapters.jax.nnx_form import MODES, NnxForm
from sleuth.adapters.jax.watching.mode_places import Switched
from sleuth.adapters.jax.words import family_of
from sleuth.core.observation import Modes, Observation, Phase

FORWARD, IN_EVAL = "forward", "forward-in-eval"
VALIDATE, IN_TRAIN = "validate", "validate-in-train"
Active = tuple[bool, ...]


class Switches:
    """Of every layer that acts differently in training."""

    def __init__(self, model: Any) -> None:
        nnx: Any = sys.modules["flax.nnx"]
        found = [
            (path, module, word)
            for path, module in NnxForm(model).modules(model)
            for word, _ in MODES
            if isinstance(getattr(module, word, None), bool) and _acts(module)
        ]
        self.paths = tuple(path for path, _, _ in found)
        self.families = {path: family_of(module) for path, module, _ in found}
        self._switches = [(module, word) for _, module, word in found]
        self.switched = Switched(model)
        self._weight = next((v for v in jax.tree.leaves(model, is_leaf=lambda x: isinstance(x, nnx.Param)) if _is(nnx, v)), None)

    def read(self) -> Active:
        return tuple(not getattr(module, word) for module, word in self._switches)

    def is_given(self, arguments: Any) -> bool:
        """Is this model among them?"""
        if self._weight is None:
            return False
        own = self._weight[...]
        return any(leaf is own for leaf in jax.tree.leaves(arguments))


def _acts(module: Any) -> bool:
    """A dropout that drops nothing, such as attention brings along, has no mode."""
    return bool(getattr(module, "rate", 1.0)) and bool(getattr(module, "dropout_rate", 1.0))


def switches_of(model: Any) -> Switches | None:
    return Switches(model) if NnxForm.claims(model) else None


def _is(nnx: Any, leaf: Any) -> bool:
    return isinstance(leaf, nnx.Param)


@dataclass
class Validation:
    """Calls in a row that trained nothing."""

    active: Active
    calls: int = 0

    @property
    def kind(self) -> str:
        return VALIDATE if not any(self.active) else IN_TRAIN


class ModeNotes:
    """Says what has changed."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self._last: dict[bool, Active] = {}

    def calls(self, active: Active) -> tuple[str, ...]:
        return FORWARD if any(active) or not active else IN_EVAL, "backward", "step"

    def trained(self, step: int, active: Active) -> Iterator[Observation]:
        yield from self._switches.switched.calls(step)
        yield from self._modes(step, active, graph=True)

    def validated(self, step: int, validation: Validation, *, last: bool) -> Iterator[Observation]:
        yield from self._modes(step, validation.active, graph=False)
        yield Phase(step, validation.kind, validation.calls, last=last)

    def _modes(self, step: int, active: Active, *, graph: bool) -> Iterator[Observation]:
        if self._last.get(graph) == active:
            return
        self._last[graph] = active
        both = list(zip(self._switches.paths, active, strict=True))
        on, off = (tuple(path for path, state in both if state is wanted) for wanted in (True, False))
        yield Modes(step, graph, bool(on) or not both, on, off, families=self._switches.families)

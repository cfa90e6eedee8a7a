"""In which mode the layers of a watched model are, from which lines it was put into it, and the calls of it that train nothing.
Of Flax NNX only: elsewhere a mode is an argument, and leaves no trace."""

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from sleuth.adapters.jax.nnx_form import MODES, NnxForm
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.jax.words import family_of
from sleuth.adapters.listening.patches import Failed, attempt
from sleuth.adapters.listening.recorder import Note, Recorder
from sleuth.core.location import Location
from sleuth.core.observation import Call, Modes, Observation, Phase
from sleuth.core.observation.calls import CallKind

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.listener import JaxListener

# The methods of a module that set its mode.
SWITCHES = {"train": CallKind.TRAIN, "eval": CallKind.EVAL}
# The first line for each; nothing is held by this.
PLACES: "weakref.WeakKeyDictionary[Any, dict[CallKind, Location]]" = weakref.WeakKeyDictionary()

Active = tuple[bool, ...]


def make_switch(kind: CallKind, failed: Failed, plain: Callable[..., Any]) -> Callable[..., Any]:
    def switch(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt(failed, _note_place, kind, self)
        return plain(self, *args, **kwargs)

    return switch


def _note_place(kind: CallKind, model: Any) -> None:
    try:
        known = PLACES.setdefault(model, {})
    except TypeError:  # of something that has no hash
        return
    if kind not in known and (place := users_line()) is not None:
        known[kind] = place


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
        self._model = weakref.ref(model)
        self._located: set[CallKind] = set()
        self._weight = next((v for v in jax.tree.leaves(model, is_leaf=lambda x: isinstance(x, nnx.Param)) if _is(nnx, v)), None)

    def read(self) -> Active:
        return tuple(not getattr(module, word) for module, word in self._switches)

    def is_given(self, arguments: Any) -> bool:
        """Is this model among them?"""
        if self._weight is None:
            return False
        own = self._weight[...]
        return any(leaf is own for leaf in jax.tree.leaves(arguments))

    def new_places(self, step: int) -> Iterator[Call]:
        """The user's lines that set the mode, each once."""
        model = self._model()
        for kind, place in list(PLACES.get(model, {}).items()) if model is not None else ():
            if kind not in self._located:
                self._located.add(kind)
                yield Call(kind, step, place)


def _acts(module: Any) -> bool:
    """A dropout that drops nothing, such as attention brings along, has no mode."""
    return bool(getattr(module, "rate", 1.0)) and bool(getattr(module, "dropout_rate", 1.0))


def _is(nnx: Any, leaf: Any) -> bool:
    return isinstance(leaf, nnx.Param)


def calls_of(active: Active) -> tuple[CallKind, ...]:
    """Of a step that was taken with these layers in training mode."""
    forward = CallKind.FORWARD if any(active) or not active else CallKind.FORWARD_IN_EVAL
    return forward, CallKind.BACKWARD, CallKind.STEP


@dataclass
class Validation:
    """Calls in a row that trained nothing."""

    active: Active
    calls: int = 0

    @property
    def kind(self) -> CallKind:
        return CallKind.VALIDATE_IN_TRAIN if any(self.active) else CallKind.VALIDATE


class ModeRecorder(Recorder):
    """Says what has changed. A compiled function that takes no gradient and is given the model is a validation."""

    def __init__(self, loop: "JaxListener", model: Any) -> None:
        self._loop, self.switches = loop, Switches(model)
        self._validation: Validation | None = None  # that is going on
        self._located: set[CallKind] = set()  # kinds of validation whose line is known
        self._last: dict[bool, Active] = {}
        self._closed = False

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not self.switches.is_given((args, kwargs)):
            return
        active = self.switches.read()
        if self._validation is None or self._validation.active != active:
            self._validation = Validation(active)
            if self._validation.kind not in self._located:
                self._located.add(self._validation.kind)
                self._loop.say(Call(self._validation.kind, self._loop.steps, users_line()))
        self._validation.calls += 1

    def close(self) -> None:
        self._closed = True

    def take(self) -> Sequence[Note]:
        validation, self._validation = self._validation, None
        if validation is None:
            return ()
        return (partial(self._validated, self._loop.steps, validation, last=self._closed),)

    def trained(self, step: int, active: Active) -> Iterator[Observation]:
        yield from self.switches.new_places(step)
        yield from self._modes(step, active, graph=True)

    def _validated(self, step: int, validation: Validation, *, last: bool) -> Iterator[Observation]:
        yield from self._modes(step, validation.active, graph=False)
        yield Phase(step, validation.kind, validation.calls, last=last)

    def _modes(self, step: int, active: Active, *, graph: bool) -> Iterator[Observation]:
        if self._last.get(graph) == active:
            return
        self._last[graph] = active
        both = list(zip(self.switches.paths, active, strict=True))
        on, off = (tuple(path for path, state in both if state is wanted) for wanted in (True, False))
        yield Modes(step, graph, bool(on) or not both, on, off, families=self.switches.families)

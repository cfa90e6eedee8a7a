"""What the calls that are heard mean: where a step begins and ends, what it was given, and what it changed."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.common.manual_loop.data_passes import Passes
from sleuth.adapters.common.manual_loop.gradient_sums import Summed
from sleuth.adapters.common.manual_loop.loop_calls import Order
from sleuth.adapters.common.manual_loop.loop_scope import loop_frame, users_line
from sleuth.adapters.common.manual_loop.loop_variables import Variables
from sleuth.adapters.common.manual_loop.loss_and_predictions import judged
from sleuth.adapters.common.manual_loop.made_values import Made
from sleuth.adapters.common.manual_loop.step import number_first, number_in
from sleuth.adapters.numpy.describing import activation_of, family_of
from sleuth.adapters.numpy.forms.layers import Layers
from sleuth.adapters.numpy.held_gradients import live_gradients
from sleuth.adapters.numpy.pass_listener import is_array
from sleuth.adapters.numpy.watching.accumulators import adds_up
from sleuth.adapters.numpy.watching.modes import ModeReader
from sleuth.adapters.numpy.watching.predecessors import Predecessors
from sleuth.adapters.numpy.watching.weights import Weights, argument
from sleuth.core.observation import Call
from sleuth.core.runtime.tree import leaves

if TYPE_CHECKING:
    from sleuth.adapters.numpy.watching.watching import NumpyWatching

# Whose beginning, and whose end, says something.
BEGIN = ("forward", "zero_grad", "update", "whole", "backward", "clip")
END = ("loss", "backward", "update", "whole")
# Steps in which it is seen whether the loop itself adds gradients up.
FOLLOWED = 3


class Events:
    def __init__(self, model: Any, optimiser: Any, watching: "NumpyWatching") -> None:
        self._model, self._watching = model, watching
        self._depth: dict[str, int] = {}
        self._places: dict[str, Call] = {}
        self._used = False  # the gradients of an earlier step are still there
        self._adds: bool | None = None
        self._summed = Summed()
        self._follows = True  # gradients are compared from backward to step
        self._raw: Any = None  # what backward returned
        self._modes = ModeReader(model)
        self._variables = Variables()
        self._stepped = False
        self.weights = Weights(model)
        self.order = Order()
        self.optimisers = Predecessors(optimiser, self.weights)
        self.passes = Passes()
        self.rate: float | None = None
        self.backwards = 0
        self.fell: str | None = None  # in which call an exception came up

    def inside(self, kind: str) -> bool:
        return self._depth.get(kind, 0) > 0

    def enter(self, kind: str) -> None:
        self._depth[kind] = 1

    def leave(self, kind: str) -> None:
        self._depth[kind] = 0

    def knows(self, optimiser: Any) -> bool:
        return self.optimisers.knows(optimiser)

    def layer(self, path: str, layer: Any, returned: Any) -> None:
        watching = self._watching
        if watching.notes.looked:
            watching.heard("layer", lambda: self._made(path, layer, returned))

    def _made(self, path: str, layer: Any, returned: Any) -> None:
        array = next((a for _, a in leaves(returned, is_array)), None)
        family = family_of(layer)
        if array is not None and array.ndim and family not in ("container", "loss"):
            self._watching.notes.made.append(Made(path, family, activation_of(layer), np.array(array), array, None, None))

    def begin(
        self, kind: str, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any], of: Any = None
    ) -> None:
        if kind in BEGIN:
            self._watching.heard(kind, lambda: self._begin(kind, function, args, options, of))

    def end(
        self,
        kind: str,
        number: int,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        returned: Any,
    ) -> None:
        if kind in END:
            self._watching.heard(kind, lambda: self._end(kind, number, function, args, options, returned))

    def _begin(self, kind: str, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any], of: Any) -> None:
        watching = self._watching
        if kind == "forward":
            self._forward(function, args, options)
        if kind == "whole":
            self.weights.used(function, args, options)
            watching.weights_kept()
        if kind == "backward" and not self.order.backwards:
            self._used = self._is_used(args[0] if args else None)
        if kind == "zero_grad":
            self._say("zero_grad")
            self.order.cleared()
        if kind == "clip":
            self._say(self.order.clipped(self._stepped))
        if kind in ("update", "whole"):
            self._say("step")
            self._say_of(of)
        if kind in ("update", "whole") or (kind == "backward" and watching.steps_in_backward):
            given = argument(function, args, options, "rate")
            self.rate = float(given) if isinstance(given, int | float | np.floating) else self.rate
        if kind == "update":
            self._about_to_step(function, args, options)

    def _forward(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        watching = self._watching
        if watching.waits_for_change and not self.inside("backward"):
            watching.maybe_ended()
        self.weights.used(function, args, options)
        if self.inside("backward") or (self.inside("whole") and self.order.backwards):
            return
        watching.first_forward()
        kind = self.order.settle()
        if kind is not None:
            watching.say(self._modes.changed(watching.steps, False, kind == "validate-in-train"))
        given = next((id(a) for a in args[::-1] if isinstance(a, np.ndarray)), 0)
        self.order.forward(self._modes.of_call(function, args, options), given)
        watching.notes.forward()
        if watching.steps_in_backward:
            watching.weights_kept()

    def _is_used(self, owner: Any) -> bool:
        """Is a gradient that a step has used still where this backward adds to it?"""
        if self._adds is None:
            self._adds = owner is not None and not isinstance(owner, np.ndarray | dict | list) and adds_up(owner)
        if not self._stepped or not self._adds:
            return False
        parameters = None if isinstance(self._model, Layers) else self.weights.parameters
        return any(bool(g.any()) for g in live_gradients(owner, parameters))

    def _about_to_step(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        watching = self._watching
        given = argument(function, args, options, "gradients")
        if given is None:
            given = argument(function, args, options, "gradient")
        found: dict[str, Any] = {}
        if self._follows or self.order.erased:
            found = self.weights.gradients(given if given is not None else self._raw)
        if self._follows:
            # A loop that hands on what backward returned adds nothing up: that need not be followed.
            handed_on = (given is None or given is self._raw) and self.order.backwards < 2
            again, watching.divided = self._summed.step(found, added=bool(self._adds))
            self._used |= again
            self._follows = not handed_on or watching.steps < FOLLOWED
        if self.order.erased:
            self.order.erased = bool(found) and not any(g is not None and g.any() for g in found.values())
        if watching.notes.looked and found:
            watching.notes.gradients = {k: np.array(v) for k, v in found.items() if v is not None}
        watching.about_to_step()

    def _end(
        self,
        kind: str,
        number: int,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        returned: Any,
    ) -> None:
        watching = self._watching
        notes = watching.notes
        value = number_in(returned if kind == "loss" else number_first(returned)) if kind in ("loss", "whole") else None
        if value is not None:
            late = notes.losses and not notes.losses[-1] and not notes.tentative
            (notes.losses[-1] if late else notes.tentative).append((number, value))
        rest = returned[1] if kind == "loss" and isinstance(returned, tuple) and len(returned) > 1 else None
        if kind == "loss" and notes.looked and number >= 0:
            name = getattr(args[0], "__name__", type(args[0]).__name__) if "self" in _names(function) else function.__name__
            own = args[1:] if "self" in _names(function) else args
            heard = judged(function, name, args, options, (value, rest), users_line()) if own else None
            if heard is not None:
                notes.heard.append(heard)
        if isinstance(rest, Mapping):
            self._backward_ended(rest, None)
        if kind == "backward":
            self._backward_ended(returned, argument(function, args, options, "gradient"))
        changed = kind in ("update", "whole") or (kind == "backward" and watching.steps_in_backward)
        if changed:
            self.weights.renewed(returned)
        if changed and not self.inside("whole"):
            watching.step_ended()

    def _backward_ended(self, raw: Any, upstream: Any) -> None:
        watching = self._watching
        self._say("backward")
        notes = watching.notes
        notes.scales.append(_scale(upstream, notes.heard[-1].gradient) if notes.heard else None)
        self.order.backward()
        self.backwards += 1
        watching.say(self._modes.changed(watching.steps, True, self.order.trained_in is not False))
        notes.backward()
        self._raw = raw
        found = self.weights.gradients(raw) if notes.looked or self._follows else {}
        if self._follows:
            self._summed.backward(found)
        watching.backward_ended(found)

    def step_kind(self) -> str:
        """And what is noted for the next one."""
        kind = "step-on-used-gradient" if self._used else "step-on-erased-gradient" if self.order.erased else "step"
        self._used, self._stepped = False, True
        self._summed.parts = []
        return kind

    @property
    def follows(self) -> bool:
        """Gradients are compared from one step to the next."""
        return self._follows

    def resumed(self, passed: int, backwards: int = 0, *, open_: bool = False, training: bool = True) -> None:
        """So many steps went by that were only half listened to; of the one that is going on this was heard."""
        self._summed = Summed()
        self._used, self._stepped = False, True
        self.optimisers.passed(passed)
        for _ in range(backwards):
            self.order.forward(training)
            self.order.backward()
        if open_:
            self.order.forward(training)

    def loss_in_loop(self) -> float | None:
        frame = loop_frame()
        return None if frame is None else self._variables.loss(frame)

    def rate_in_loop(self) -> float | None:
        frame = loop_frame()
        return None if frame is None else self._variables.rate(frame)

    def _say(self, kind: str) -> None:
        if kind not in self._places:
            self._places[kind] = Call(kind, self._watching.steps, users_line())
            self._watching.say(self._places[kind])

    def _say_of(self, optimiser: Any) -> None:
        if optimiser is not None:
            self._watching.say(self.optimisers.stepped(optimiser, self._watching.steps, self.passes.count))


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.__code__.co_varnames[:1]


def _scale(upstream: Any, told: np.ndarray | None) -> float | None:
    """By how much what went into backward is the gradient that the loss told; None where it is something else."""
    if not isinstance(upstream, np.ndarray) or told is None or upstream.shape != told.shape:
        return None
    size = float((told * told).sum())
    scale = float((upstream * told).sum()) / size if size > 0 else 0.0
    near = float(np.abs(upstream - scale * told).max(initial=0.0)) <= 1e-5 * float(np.abs(upstream).max(initial=0.0))
    return scale if scale > 0 and near else None

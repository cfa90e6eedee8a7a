"""Between JAX and whoever listens: knows which listener a gradient or an update belongs to.

Whatever is called from a patched function of JAX is called through `attempt`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sleuth.adapters.jax.watching.channel import GRADIENT, Lane, Part
from sleuth.adapters.jax.watching.compiled_calls import CompiledCalls
from sleuth.adapters.jax.watching.executables import Compiled
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.measuring import measure_changes, measure_now
from sleuth.adapters.jax.watching.patches import Patches
from sleuth.adapters.jax.watching.seen_batches import Taken
from sleuth.adapters.listening.patches import speak_up
from sleuth.core.location import Location

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.discovery import JaxDiscovery
    from sleuth.adapters.jax.watching.listener import JaxListener

# Frames are searched for the optimiser of updates that are applied at once, and only so often. A gradient that is compiled is
# known from its second call on.
FIRST_STEPS = 4


class Hub:
    def __init__(self) -> None:
        self.listeners: list[JaxListener] = []
        self.discovery: JaxDiscovery | None = None
        self.calls = CompiledCalls(self)
        self._patches = Patches(self)
        self._unlocated: str | None = None  # the first line that could not be told, while anybody listens

    def join(self, listener: "JaxListener") -> None:
        self.listeners.append(listener)
        if self._unlocated is not None:
            listener.remark(self._unlocated)
        self._arrange()

    def leave(self, listener: "JaxListener") -> None:
        self.listeners = [other for other in self.listeners if other is not listener]
        self._arrange()

    def discover(self, discovery: "JaxDiscovery | None") -> None:
        self.discovery = discovery
        self._arrange()

    def forget(self) -> None:
        """In a child made by fork: nobody drains there."""
        self.listeners, self.discovery = [], None
        self.calls.forget()
        self._arrange()

    def _arrange(self) -> None:
        wanted = bool(self.listeners) or self.discovery is not None
        Compiled.call = self.calls.call if wanted else None
        if wanted:
            self._patches.open()
        else:
            self._unlocated = None
            self._patches.close()

    def failed(self, error: Exception) -> None:
        """Whoever listens gives up."""
        for listener in self.listeners:
            listener.give_up(error)
        if self.discovery is not None:
            self.discovery.give_up(error)

    def unlocated(self, error: Exception) -> None:
        """Where the user made something is not known: the rest is recorded all the same. It may have been made before anybody
        listens to its training."""
        if self._unlocated is None:
            self._unlocated = f"the line of a call could not be told: {type(error).__name__}: {error}"
            for listener in self.listeners:
                listener.remark(self._unlocated)

    def speak_up(self) -> None:
        """After what is computed at once: where the user asked for it, something of ours may raise here."""
        speak_up(self.listeners)

    def owner(self, part: Part, weights: list[Any] | None, optimiser: Any = None) -> "JaxListener | None":
        for listener in self.listeners:
            if listener.takes(part):
                return listener
        if self.discovery is None or part.single or not part.is_gradient:
            return None
        return self.discovery.discovered(part.lane, weights, optimiser)

    def state_begun(self, optimiser: Any, place: Location) -> None:
        if HEARING.collector is not None:
            HEARING.collector.begun = (optimiser.update, place)
            return
        for listener in self.listeners:
            listener.begun.note(listener.steps, place)

    # What is computed at once, without a compiled step around it.

    def eager_gradient(
        self, lane: Lane, weights: list[Any], loss: Any, gradients: list[Any], *, single: bool, taken: Taken | None = None
    ) -> None:
        part = Part(GRADIENT, lane, single=single)
        owner = self.owner(part, weights)
        if owner is None or owner.gave_up is not None:
            return
        owner.begin(lane, list(range(len(lane.names))))
        look = measure_now([*gradients, *weights]) if owner.is_due(part) else None
        if owner.passing is not None and taken is not None:
            owner.passing.take_eager(owner.coming, taken, lane.names)
        owner.gradient(lane, loss, look, lambda: weights)
        owner.remember(loss, None, None)

    def eager_update(self, lane: Lane, before: list[Any], after: list[Any], optimiser: Callable[[], Any] = lambda: None) -> None:
        owner = next((listener for listener in self.listeners if listener.knows(lane)), None)
        if owner is None or owner.gave_up is not None:
            return
        if owner.optimiser is None and owner.steps < FIRST_STEPS:
            owner.optimiser = optimiser()
        owner.updated(lane, before)
        owner.update(lane, measure_changes(before, after) if owner.is_looking(lane) else None)


HUB = Hub()

"""What the adapter offers of watching."""

from collections.abc import Callable, Sequence
from typing import Any

from sleuth.adapters.jax.watching.discovery import JaxDiscovery
from sleuth.adapters.jax.watching.watching import JaxWatching
from sleuth.adapters.jax.watching.wrapping import listened
from sleuth.core.adapter import Attended, Discovered, Discovering, Discovers, Watches, Watching, WrapsSteps
from sleuth.core.guard import Guard


class JaxWatches(Discovers, Watches, WrapsSteps):
    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        return JaxWatching(model, every=every, overhead=overhead, guard=guard)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return JaxDiscovery(begin, steps)

    def listened(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return listened(step)

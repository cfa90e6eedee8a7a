"""What the adapter offers of watching."""

from collections.abc import Callable, Sequence
from typing import Any

from sleuth.adapters.jax.crash import crash
from sleuth.adapters.jax.watching.discovery import JaxDiscovery
from sleuth.adapters.jax.watching.step_wrapping import listened
from sleuth.adapters.jax.watching.watching import JaxWatching
from sleuth.core.contract.adapter import Attended, Discovered, Discovering, Discovers, Explains, Watches, Watching, WrapsSteps
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Observation


class JaxWatches(Discovers, Explains, Watches, WrapsSteps):
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
        return JaxWatching(model, optimisers, every=every, overhead=overhead, guard=guard, keeps=keeps)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return JaxDiscovery(begin, steps)

    def explain(self, error: BaseException) -> list[Observation]:
        return crash(error, 0)

    def listened(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return listened(step)

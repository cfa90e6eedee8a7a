"""One watch of a Keras training."""

from collections.abc import Iterable, Sequence
from typing import Any

from sleuth.adapters.keras import backend, failure
from sleuth.adapters.keras.watching.listener import SHARES, KerasListener
from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.listening.recorder import Note, observations_of
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Observation


class KerasWatch(ListeningWatch):
    most_bytes = 256 << 20  # looks hold copies of all weights
    listener: KerasListener

    def __init__(
        self,
        model: Any,
        optimisers: Sequence[Any] = (),
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        backend.require_known()
        self.model = model
        pace = Pace(every=every, overhead=overhead, shares=SHARES)
        optimiser = optimisers[0] if optimisers else None
        super().__init__(_listener_class()(model, optimiser, pace, guard or Guard(), self.put, self.say, keeps=keeps))

    def open(self) -> None:
        attempt(self.listener.give_up, self.listener.open)

    def close(self) -> None:
        attempt(self.listener.give_up, self.listener.remove_patches)
        attempt(self.listener.give_up, self.listener.close)

    def to_observations(self, record: Sequence[Note]) -> Iterable[Observation]:
        return observations_of(record)

    def take_kept(self) -> Kept | None:
        return self.listener.take_kept()

    def explain(self, error: BaseException) -> list[Observation]:
        return failure.explain_crash(error, self.model, self.steps)


def _listener_class() -> type[KerasListener]:
    if backend.name() == "torch":
        from sleuth.adapters.keras.watching.torch_listener import TorchListener

        return TorchListener
    from sleuth.adapters.keras.watching.jax_listener import JaxListener

    return JaxListener

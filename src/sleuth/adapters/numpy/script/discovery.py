"""Trainings that a script runs by hand in NumPy, found while it runs."""

import sys

from sleuth.adapters.listening.discovery import Begin, Discovery
from sleuth.adapters.numpy.script.ears import Ears
from sleuth.adapters.numpy.script.listener import ScriptListener
from sleuth.adapters.numpy.script.network import HeardNetwork
from sleuth.core.contract.adapter import Attended
from sleuth.core.runtime.source.loading import current

# Where one of these is there, it trains; what the script does in NumPy beside it is something else.
OTHERS = ("torch", "jax", "keras", "tensorflow", "mlx", "mithril")


class ScriptDiscovery(Discovery):
    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        super().__init__(begin, steps)
        self._ears: Ears | None = None
        self._attended: Attended | None = None

    def open(self, *, found_already: bool = False) -> None:
        hook = current()
        if hook is not None:
            self._ears = Ears(hook, self._found, self._over, self._failed, self.leave_when_enough)
            self._ears.open()

    def close(self) -> None:
        hook = current()
        if hook is not None and self._ears is not None:
            hook.silence()

    def _found(self, network: HeardNetwork) -> ScriptListener | None:
        if not self.is_listening or any(name in sys.modules for name in OTHERS):
            return None
        self._attended = self.begin(network, (), "numpy")
        return None if self._attended is None else network.listener

    def _over(self, is_none: bool) -> None:
        if self._attended is not None and self.is_listening:
            attended, self._attended = self._attended, None
            if is_none:
                self.drop(attended)
            else:
                self.end(attended)

    def _failed(self, error: Exception) -> None:
        self.give_up(error)

"""Trainings that begin in a script that `sleuth run` runs: an optimiser was made, and a model that holds its arrays is called."""

from abacus import Module, Optimiser

from sleuth.adapters.listening.discovery import Begin, Discovery
from sleuth.adapters.listening.listener import contained
from sleuth_abacus.patches import PATCHES, Events


class AbacusDiscovery(Discovery):
    def __init__(self, begin: Begin, steps: int | None) -> None:
        super().__init__(begin, steps)
        self._finder = Finder(self)

    def open(self, *, found_already: bool = False) -> None:
        PATCHES.add(self._finder)

    def close(self) -> None:
        PATCHES.remove(self._finder)


class Finder(Events):
    def __init__(self, discovery: Discovery) -> None:
        super().__init__()
        self._discovery = discovery
        self._waiting: list[Optimiser] = []

    def made(self, optimiser: Optimiser) -> None:
        self._waiting.append(optimiser)

    @contained
    def forward(self, module: Module) -> None:
        """The outermost module is called first, and before anything of the training's first step has happened."""
        if not self._waiting or not self._discovery.is_listening:
            return
        held = {id(array) for array in module.parameters().values()}
        for optimiser in [one for one in self._waiting if any(id(a) in held for a in one.parameters.values())]:
            self._waiting.remove(optimiser)
            self._discovery.begin(module, (optimiser,), type(module).__name__)

    def give_up(self, error: Exception) -> None:
        super().give_up(error)
        self._discovery.give_up(error)

    def speak_up(self) -> None:
        self._discovery.leave_when_enough()

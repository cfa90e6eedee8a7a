"""How closely the step that is going on is followed, and which of the two hears it: the watcher, or its light listener."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.light_listener import LightListener
from sleuth.adapters.torch.watching.model_calls import Root
from sleuth.adapters.torch.watching.optimisers import Held
from sleuth.adapters.torch.watching.step_memory import Memory

if TYPE_CHECKING:
    from sleuth.adapters.torch.watching.watcher import Watcher

Kinds = Mapping[str, int]


class ListenerSwitch:
    def __init__(self, watcher: "Watcher", pace: Pace) -> None:
        self._watcher, self._pace = watcher, pace
        self._light = LightListener(watcher)
        self._roots: list[Root] = []
        self.full = True  # the watcher hears
        self.light_steps = 0  # that the light listener heard
        self.until = 0  # this step the watcher goes on hearing
        self.needed = False  # for something in this loop that cannot be followed otherwise
        self.unusual = False  # something unusual, in the middle of a step, made the watcher hear it
        self._kinds: tuple[Kinds, Kinds] = ({}, {})  # of call, in the last two steps that were heard in full
        self.quiet_until = 0  # no step before this one needs any preparation

    def open(self, roots: list[Root]) -> None:
        self._roots = roots
        self._watcher.full_looks.begin(self._pace.looks_at(0))

    def heard(self, kinds: Kinds) -> None:
        """What a step called that was followed. One that something unusual has begun says nothing about the others."""
        if not self.unusual:
            self._kinds = (self._kinds[1], kinds)
        self.unusual = False

    def prepare(self, stepped: Held, training: bool) -> None:
        """How closely is the step that begins now followed?"""
        step = self._watcher.steps
        scenes = self._watcher.scenes
        self._watcher.full_looks.begin(self._pace.looks_at(step))
        listens = self._pace.listens_to(step, self._stretch) or self.needed or step < self.until or step >= scenes.due
        if listens and not self.full:
            self.listen_fully(stepped)
        elif not listens and self.full:
            self._listen_lightly(training)
        self.quiet_until = min(self._pace.quiet_until(step), max(scenes.due, step + 1))

    def listen_fully(self, stepped: Held | None, backwards: int = 0, losses: Sequence[float | torch.Tensor] = ()) -> None:
        """`stepped`: whose step has just ended; None: it is in the middle of something, after so many backwards."""
        if self.full:
            return
        self.unusual = stepped is None
        self.give_back()
        self._watcher.resume(stepped, backwards, losses)

    def give_back(self) -> None:
        """The watcher hears from now on, whatever went before."""
        if not self.full:
            self.full = True
            self._exchange(self._light, self._watcher)

    def _listen_lightly(self, training: bool) -> None:
        self.full = False
        before, latest = self._kinds
        self._light.begin({kind: max(n, before[kind]) for kind, n in latest.items() if kind in before}, training)
        self._exchange(self._watcher, self._light)

    def _exchange(self, before: TorchEvents, now: TorchEvents) -> None:
        patches.exchange(before, now)
        for root in self._roots:
            root.listener = now

    @property
    def _stretch(self) -> int:
        """Of several optimisers each has to be heard, and what it left before that."""
        count = len(self._watcher.optimisers)
        return 1 if count < 2 else 2 * count

    @property
    def memory(self) -> Memory:
        """Of the step that is going on."""
        return self._watcher.scenes.memory if self.full else self._light.memory

    def let_go(self) -> None:
        self._light, self._roots = LightListener(self._watcher), []

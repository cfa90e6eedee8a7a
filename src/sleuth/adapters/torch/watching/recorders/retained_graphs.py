"""Whether the graphs of earlier steps are gone, as they should be, and who holds them when they are not.

A node of the graph cannot be weakly referenced, but what lies in its `metadata` lives as long as the node does: on some steps
a mark is laid there, and only a weak reference to it is kept.
"""

import sys
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch._C._autograd import _get_sequence_nr

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.watching.call_places import calling_frame, users_line
from sleuth.adapters.torch.watching.graph_reach import Crossing, crossings, deep, reach
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.memory_holders import carried, holder_of_graphs, passed_on
from sleuth.core.location import Location, locate
from sleuth.core.observation import Holder, Retention
from sleuth.core.runtime.tree import leaves

# A mark costs some microseconds: on every step it would be too much, and what grows is seen as well from every eighth.
INTERVAL = 8
# When so many marked graphs are alive, every second mark is let go and the interval doubles: our own memory stays bounded.
MOST_MARKS = 64
# So many marked graphs alive at once are a reason to look who holds them.
SUSPICIOUS = 6
SEARCHES = 3
# Of what the model returns.
MOST_MARKED = 8
# Every so many marks one is laid deep inside the model too: somebody may hold what a layer said and not what came of it.
DEEP = 4
DEEP_NODES = 24
# How many steps' forwards are remembered.
SPANS = 32


class Mark:
    __slots__ = ("__weakref__",)


class Marked(NamedTuple):
    step: int
    number: int  # of nodes made before its step
    mark: "weakref.ref[Mark]"


class Span(NamedTuple):
    """The numbers of the nodes that one step's forwards made, and of those of the whole step."""

    step: int
    first: int
    begin: int
    end: int
    after: int


class Graphs(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._key = f"sleuth {id(self)}"  # two watches must not take each other's marks away
        self._interval = INTERVAL
        self._next = 0
        self._fresh: Mark | None = None  # laid at the step that goes on
        self._marked: list[Marked] = []
        self._first = _get_sequence_nr()
        self._begin = self._end = -1
        self._latest: deque[tuple[int, ...]] = deque(maxlen=SPANS)  # made into spans when they are asked for
        self._place: tuple[CodeType, int] | None = None  # from where the model is called
        self._searches = SEARCHES
        self._search_at = SUSPICIOUS
        self._searching = False
        self._told = self._told_at = 0
        self._laid = 0
        self._notes: list[Note] = []

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self._begin < 0:
            self._begin = _get_sequence_nr()
            if self.loop.steps >= self._next and torch.is_grad_enabled():
                frame = calling_frame()
                self._place = (frame.f_code, frame.f_lasti)

    def output(self, output: Any) -> None:
        self._end = _get_sequence_nr()
        if self.loop.steps >= self._next:
            several = () if isinstance(output, torch.Tensor) else islice(leaves(output, _has_graph), MOST_MARKED)
            self._lay((output,) if isinstance(output, torch.Tensor) else (tensor for _, tensor in several))

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._searching:
            self._search(loss, sys._getframe(1))
        # The loss of a model that was called otherwise than by its name: compiled, or by its parts.
        if self._fresh is None and self.loop.steps >= self._next:
            self._lay((loss,))

    def backward_failed(self, loss: torch.Tensor) -> None:
        """A graph that was used up, or whose weights were written since: does it go back beyond this step?"""
        # The training is over most likely: there is time.
        found = self._dragged(loss, 0.2)
        if found is not None:
            self._notes.append(self._told_of(found, sys._getframe(1), failed=True))

    def after_step(self, number: int) -> None:
        now = _get_sequence_nr()
        self._latest.append((self.loop.steps, self._first, self._begin, self._end, now))
        self._begin = -1
        if self.loop.steps >= self._next:
            self._count()
        self._first = now

    def resumed(self) -> None:
        self._first = _get_sequence_nr()
        self._begin = -1

    def take(self) -> Sequence[Note]:
        if not self._notes:
            return ()
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        self._fresh = None
        self._marked.clear()

    def _lay(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            node: Any = tensor.grad_fn
            if node is not None:
                if self._fresh is None:
                    self._fresh = Mark()
                node.metadata[self._key] = self._fresh
                if self._laid % DEEP == 0:
                    deep(node, DEEP_NODES).metadata[self._key] = self._fresh

    def _count(self) -> None:
        step = self.loop.steps
        self._next = step + self._interval
        if self._marked:
            self._marked = [m for m in self._marked if m.mark() is not None]
        alive = len(self._marked)  # the graph of this very step may well be
        if self._fresh is not None:
            self._marked.append(Marked(step, self._first, weakref.ref(self._fresh)))
            self._fresh = None
            self._laid += 1
        # One may be alive because the next step has not yet let it go: a loss lives until its name is given anew.
        steps = alive * self._spacing() if alive > 1 else 0
        if self._laid and (steps != self._told or step >= 2 * self._told_at):
            self._told, self._told_at = steps, step
            self._notes.append(Retention(step, steps))
        self._searching = alive >= self._search_at and self._searches > 0
        if self._searching:
            self.loop.listen_on(2)  # the step that is searched and the one before it are told apart
        if alive >= MOST_MARKS:
            del self._marked[1::2]
            self._interval *= 2

    def _spacing(self) -> int:
        """Of the marks that are alive, in steps: not every step is listened to."""
        steps = [marked.step for marked in self._marked]
        return max(self._interval, round((steps[-1] - steps[0]) / (len(steps) - 1)))

    def _search(self, loss: torch.Tensor, frame: FrameType) -> None:
        self._searching = False
        self._searches -= 1
        self._search_at *= 3
        dragged = self._dragged(loss, 0.01)
        if dragged is not None:
            self._notes.append(self._told_of(dragged, frame, failed=False))
            return
        middle = self._marked[len(self._marked) // 2]
        holder = holder_of_graphs(frame, middle.number)
        location = holder.location if holder is not None and holder.location else users_line(frame)
        self._notes.append(Retention(self.loop.steps, self._told, holder=holder, location=location))

    def _dragged(self, loss: torch.Tensor, seconds: float) -> tuple[int, str] | None:
        """How many earlier steps belong to the graph of a loss, and how they came in (Retention.through)."""
        spans = [Span(*numbers) for numbers in self._latest]
        # A loss that is itself of an earlier step went backward twice: nothing is dragged along.
        new = loss.grad_fn is not None and loss.grad_fn._sequence_nr() >= self._first
        old = crossings(loss, self._first, seconds) if spans and new else []
        if not old:
            return None
        oldest = reach(loss, spans[0].first)
        steps = len({s.step for s in spans if s.after > oldest})
        ways = {self._way(crossing, spans) for crossing in old}
        return steps, next((way for way in ("model", "loss") if way in ways), "")

    def _way(self, crossing: Crossing, spans: list[Span]) -> str:
        """A GAN that uses its fakes twice is neither: they were made before the forward of their step."""
        older = crossing.older
        if self._begin < 0:  # the model is called by its parts
            return "loss" if crossing.scalar else "model" if len(self.loop.optimisers) == 1 else ""
        if self._begin <= crossing.newer < self._end:
            return "model" if any(s.begin <= older < s.end for s in spans) else ""
        return "loss" if any(s.end <= older < s.after for s in spans) else ""

    def _told_of(self, dragged: tuple[int, str], frame: FrameType, *, failed: bool) -> Retention:
        steps, through = dragged
        name, called = self._state(frame) if through == "model" else (None, None)
        holder = Holder(name, "the state that goes from step to step", location=called) if name else None
        # The marks are few: what the loss drags along is known better.
        alive = max(self._told, steps)
        return Retention(self.loop.steps, alive, steps, through, failed, holder, called or users_line(frame))

    def _state(self, frame: FrameType) -> tuple[str | None, Location | None]:
        """The name of what goes from step to step, and the line that passes it on."""
        called = _line(self._place)
        name, line = passed_on(frame, called)
        return (name or carried(self.loop.model)), (line or called)


def _has_graph(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and thing.grad_fn is not None


def _line(place: tuple[CodeType, int] | None) -> Location | None:
    if place is None or not is_users(place[0].co_filename):
        return None
    code, at = place
    line = next((line for begin, end, line in code.co_lines() if begin <= at < end), None)
    return None if line is None else locate(code.co_filename, line)

"""Hears the calls that stand in the script: finds its trainings, and follows the one that is running."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from sleuth.adapters.numpy.script.listener import MOST_TOLD, ScriptListener
from sleuth.adapters.numpy.script.loop import LoopFinder
from sleuth.adapters.numpy.script.losses import LossChoice
from sleuth.adapters.numpy.script.network import HeardNetwork, give_names, in_order, weights_among
from sleuth.adapters.numpy.script.operands import fitting, operands_of, rate_in
from sleuth.adapters.numpy.script.slots import LINKS, Event, SiteSlots, Slot, arrays_in
from sleuth.core.runtime.source.loading import Hook

# What happened before a training is known to be one.
MOST_LOGGED = 4096
# Such small trainings that come to nothing are something else, such as sums over a batch.
FEW_STEPS, FEW_TIMES = 24, 2
# Links of a chain at which a training may begin, and after which it is none.
TRIES = (LINKS + 1, 6, 12, 24, 48)
MOST_LINKS = 64


class Ears:
    """`begin(network)` opens a watch, or None; `end(is_none)` closes the one that is open, or forgets it; `stepped()` may raise,
    because the user asked for a number of steps."""

    def __init__(
        self,
        hook: Hook,
        begin: Callable[[HeardNetwork], ScriptListener | None],
        end: Callable[[bool], None],
        failed: Callable[[Exception], None],
        stepped: Callable[[], None],
    ) -> None:
        self._hook, self._begin, self._end, self._failed, self._stepped = hook, begin, end, failed, stepped
        self.training: ScriptListener | None = None
        self._sites: dict[int, SiteSlots] = {}
        self._off: set[int] = set()
        self._asleep: set[int] = set()  # off while a training is followed that is not theirs
        self._stash: dict[int, list[tuple[Any, int, np.ndarray]]] = {}
        self._log: list[Event | tuple[int, Any]] = []
        self._short: dict[int, int] = {}  # trainings of few steps, by the statement of their first weight
        self._mark_site = self._last_site = -1
        self._last_count = self._left = 0
        self._mark: float = 0.0
        self._mark_due = False
        self._mark_at: tuple[Any, int] = (None, 0)
        self._finder: LoopFinder | None = None

    def open(self) -> None:
        self._hook.told, self._hook.told_before, self._hook.passed = self._told, self._told_before, self._passed
        self._listen_in_full()

    def _listen_in_full(self) -> None:
        self._hook.before, self._hook.after = self._before, self._after

    def _told(self, number: int, value: Any) -> None:
        if self._finder is not None:
            self._finder.told(number, sys._getframe(1))
        if self.training is not None:
            self.training.told.append((number, value))
            if len(self.training.told) > MOST_TOLD:
                del self.training.told[: MOST_TOLD // 2]
        elif len(self._log) < MOST_LOGGED:
            self._log.append((number, np.array(value) if isinstance(value, np.ndarray) else value))

    def _told_before(self, number: int, value: Any) -> None:
        self._told(~number, value)

    def _passed(self, number: int, value: Any) -> Any:
        self._told(number, value[0] if isinstance(value, tuple) and value else value)
        return value

    def _before(self, number: int, value: Any) -> None:
        if number in self._off:
            return
        began = time.perf_counter()
        try:
            if self._mark_due and number == self._mark_site:
                self._mark_due = False
                if not self._is_marked(value):
                    self._restart()
            self._stash[number] = [(key, id(array), np.array(array)) for key, array in arrays_in(value)]
        except Exception as error:
            self._give_up(error)
        self._paid(began)

    def _after(self, number: int, value: Any, owner: Any = None, key: Any = None) -> None:
        if number in self._off:
            return
        began, over = time.perf_counter(), False
        try:
            over = self._updated(number, value, owner, key, sys._getframe(1))
        except Exception as error:
            self._give_up(error)
        self._paid(began)
        if over:
            self._stepped()

    def _paid(self, began: float) -> None:
        if self.training is not None:
            self.training.measured_seconds += time.perf_counter() - began

    def _give_up(self, error: Exception) -> None:
        self._hook.silence()
        self._failed(error)

    def _updated(self, number: int, value: Any, owner: Any, key: Any, frame: FrameType) -> bool:
        """Is a step over with it?"""
        stash = {entry[0]: entry for entry in self._stash.pop(number, ())}
        site = self._sites.get(number)
        if site is None:
            site = self._sites[number] = SiteSlots(number, self._hook.sites.updates[number])
        if not stash or isinstance(owner, np.ndarray):
            site.misses += 1
        events = list(self._events(site, stash, value, owner, key, frame)) if not isinstance(owner, np.ndarray) else []
        if site.is_hopeless:
            self._off.add(number)
        over = False
        for event, broke in events:
            if self._finder is not None and self.training is not None and id(event.slot) in self.training.names:
                self._finder.updated(self.training.names[id(event.slot)], event, frame)
            over |= self._take(event, broke)
        return over

    def _events(self, site: SiteSlots, stash: dict[Any, Any], value: Any, owner: Any, key: Any, frame: FrameType) -> Any:
        values: dict[str, Any] | None = None
        for inner, array in list(arrays_in(value)):
            _, identity, before = stash.get(inner, (None, 0, None))
            if before is None or before.shape != array.shape:
                continue
            where = _where(inner, owner, key, id(array) if id(array) == identity else 0)
            known = len(site.slots)
            breaks = sum(s.breaks for s in site.slots)
            slot = site.met(where, before, array)
            broke = sum(s.breaks for s in site.slots) > breaks or len(site.slots) > known
            values = operands_of(site.update, frame) if values is None else values
            name = inner if inner is not None else key
            operands = fitting(values, name, array.shape)
            yield Event(slot, before, np.array(array), operands, rate_in(values)), broke

    def _take(self, event: Event, broke: bool) -> bool:
        training = self.training
        if training is not None and id(event.slot) in training.names:
            if broke:
                self._restart()
                self._log.append(event)
                return False
            return training.update(event) and self._step_over(event)
        if training is None and len(self._log) < MOST_LOGGED:
            self._log.append(event)
        if event.slot.links in TRIES and event.slot.shape and training is None:
            self._try_to_begin(event.slot)
        elif event.slot.links > MOST_LINKS and (training is None or not event.slot.is_carried):
            self._off.add(event.slot.site)
        return False

    def _try_to_begin(self, latest: Slot) -> None:
        turn = self._last_turn(latest)
        carried = [s for site in self._sites.values() for s in site.slots if s.is_carried and turn.get(id(s)) == 1]
        order = {id(e.slot): i for i, e in reversed(list(enumerate(self._log))) if isinstance(e, Event)}
        for slot in carried:
            slot.order = order.get(id(slot), 0)
        carried.sort(key=lambda slot: slot.order)
        _mark_duplicates(carried)
        weights = in_order(weights_among(carried))
        if not weights:
            return
        give_names(weights)
        others = tuple({s.update.target for s in carried} - {s.update.target for s in weights})
        for slot in weights:
            slot.remembered = others
        first = {id(e.slot): e.before for e in reversed(self._log) if isinstance(e, Event)}
        if not all(id(s) in first for s in weights):
            return
        network = HeardNetwork(weights, {s.name: first[id(s)] for s in weights}, LossChoice(self._hook.sites.tellings))
        listener = self._begin(network)
        log, self._log = self._log, []
        if listener is None:
            self._hook.silence()
            return
        self.training = listener
        self._finder = LoopFinder(self._hook.trees)
        own = {s.site for s in weights}
        self._asleep = {number for number in self._sites if number not in own} - self._off
        self._off |= self._asleep
        last: Event | None = None
        for entry in _from_a_beginning(log, listener):
            if isinstance(entry, Event):
                last = entry if listener.update(entry) else last
            else:
                listener.told.append(entry)
        if last is not None:
            self._step_over(last)

    def _last_turn(self, latest: Slot) -> dict[int, int]:
        """How often each was updated since this one was the last time. What a step adds up is updated more often than weights."""
        counts: dict[int, int] = {}
        events = [e for e in self._log if isinstance(e, Event)]
        for event in reversed(events):
            if event.slot is latest and id(latest) in counts:
                break
            counts[id(event.slot)] = counts.get(id(event.slot), 0) + 1
        return counts

    def _step_over(self, event: Event) -> bool:
        """How closely is the next one followed?"""
        training = self.training
        assert training is not None
        if self._finder is not None:
            self._finder.step_over(training.losses.chosen)
            training.network.loop, training.network.no_loop = self._finder.loop, self._finder.reason
            self._finder = None if self._finder.is_done else self._finder
        if training.looks_next() or self._finder is not None:
            self._listen_in_full()
            return True
        slots = training.network.slots
        firsts = [s for s in slots if s.order == min(o.order for o in slots if o.site == s.site)]
        mark = max(firsts, key=lambda s: float(np.abs(s.left).max(initial=0.0)))
        self._mark_site, self._last_site = mark.site, event.slot.site
        self._last_count = self._left = _calls_a_step(self._last_site, slots)
        array = training.network.values[mark.name]
        place = int(np.abs(array).argmax())
        self._mark, self._mark_due = float(array.reshape(-1)[place]), True
        self._mark_at = (_inner(mark), place)
        for slot in slots:
            slot.passed = True
        self._hook.before, self._hook.after = self._before_lightly, self._after_lightly
        return True

    def _before_lightly(self, number: int, value: Any) -> None:
        if number == self._mark_site and self._mark_due and not self._is_marked(value):
            self._listen_in_full()
            self._before(number, value)

    def _after_lightly(self, number: int, value: Any, owner: Any = None, key: Any = None) -> None:
        if number == self._mark_site and self._mark_due:
            self._mark_due = False
            self._mark = _entry(value, *self._mark_at)
        if number != self._last_site:
            return
        self._left -= 1
        if self._left:
            return
        self._left, self._mark_due = self._last_count, True
        training = self.training
        if training is None:
            return
        try:
            training.pass_step()
            if training.looks_next():
                self._listen_in_full()
        except Exception as error:
            self._give_up(error)
        self._stepped()

    def _is_marked(self, value: Any) -> bool:
        found = _entry(value, *self._mark_at)
        # A decay between two steps is none of a new beginning.
        return found == self._mark or found != found or abs(found - self._mark) <= 0.5 * abs(self._mark)

    def _restart(self) -> None:
        """The weights are others than those that the last step left: another training begins, or this one was none."""
        training, self.training, self._finder = self.training, None, None
        is_none = training is not None and training.steps < FEW_STEPS and not training.losses.is_heard
        if training is not None and is_none:
            first = training.network.slots[0].site
            self._short[first] = self._short.get(first, 0) + 1
            if self._short[first] >= FEW_TIMES:
                self._off |= {s.site for s in training.network.slots}
        self._off -= self._asleep
        self._asleep = set()
        self._sites = {n: s for n, s in self._sites.items() if n in self._off}
        self._log = []
        self._end(is_none)


def _from_a_beginning(log: list[Event | tuple[int, Any]], listener: ScriptListener) -> list[Event | tuple[int, Any]]:
    """The log may begin in the middle of a step: updates before the first loss that are not all of them."""
    told = next((i for i, entry in enumerate(log) if not isinstance(entry, Event)), 0)
    before = {id(e.slot) for e in log[:told] if isinstance(e, Event)} & set(listener.names)
    return log[told:] if len(before) < len(listener.names) else log


def _where(inner: Any, owner: Any, key: Any, identity: int) -> tuple[int, Any]:
    """Which of the arrays that one statement updates. A dict may be copied from step to step, its keys stay."""
    if owner is not None:
        held = 0 if isinstance(owner, dict | list | tuple) else id(owner)
        return held, inner if inner is not None else key if isinstance(key, str | int) else str(key)
    return (identity, inner)


def _inner(slot: Slot) -> Any:
    return slot.key[1] if slot.update.each or (not slot.update.is_name and isinstance(slot.key, tuple)) else None


def _entry(value: Any, key: Any, place: int) -> float:
    try:
        if not isinstance(value, np.ndarray):
            value = value[key]
        return float(value.item(place))
    except Exception:  # it has another form now: whatever it is, it is not what was left
        return float("inf")


def _calls_a_step(site: int, slots: list[Slot]) -> int:
    own = [s for s in slots if s.site == site]
    if own and (own[0].update.each or _is_container(own)):
        return max(1, len({s.key[0] for s in own}))
    return max(1, len(own))


def _is_container(own: list[Slot]) -> bool:
    """params = update(params, …): one call for all of its arrays."""
    return own[0].update.is_name and len(own) > 1 and len({s.key[0] for s in own}) == 1


def _mark_duplicates(carried: list[Slot]) -> None:
    """What a function updates, and what its caller takes over from it, is one weight."""
    for i, slot in enumerate(carried):
        for other in carried[i + 1 :]:
            if other.site != slot.site and other.shape == slot.shape and _leave_the_same(slot, other):
                worse = slot if slot.update.is_name and not other.update.is_name else other
                worse.duplicate = True


def _leave_the_same(one: Slot, other: Slot) -> bool:
    """In the middle of a step one of them may be a step ahead."""
    pairs = ((one.left, other.left), (one.left_before, other.left), (one.left, other.left_before))
    return any(a is not None and b is not None and bool(b.any()) and np.array_equal(a, b) for a, b in pairs)

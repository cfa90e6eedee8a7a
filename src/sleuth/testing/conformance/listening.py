"""One behaviour of listening in every framework: a rule for each promise of adapters/listening."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.listening.watching import MOST_WAITING, ListeningWatch
from sleuth.core.contract.adapter import Adapter, Watches, Watching
from sleuth.core.contract.guard import Act, Alarm, Guard
from sleuth.core.observation import Absent, Dropped, Frame, LossCall, Memory, NotFinite, Observation, Role, Step
from sleuth.core.subject import Subject
from sleuth.testing.conformance.attributes import attributes, changed, packages_of
from sleuth.testing.conformance.rule import FEATURES, data, known_network, native, rule
from sleuth.testing.kit import Kit
from sleuth.testing.trainings import Loop, Training

STEPS, BATCH = 5, 4
# At this step something is wrong with the data.
AT = 3
# With these a gradient of 2e40 does not fit into single precision, and the loss of 1e30 does.
LARGE, SMALL = 1e25, 1e-10
FEW = 4


class _Failing:
    """A loader of the user's own that raises."""

    def __init__(self, loader: Any, batches: int) -> None:
        self._loader, self._batches = loader, batches

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._loader):
            if number == self._batches:
                raise KeyError("the user's own")
            yield batch


def spoiled_training(kit: Kit, steps: int = STEPS, at: int = AT) -> Training:
    """Weights are known, and batch `at` holds a NaN."""
    x, y = data()
    x[at * BATCH] = np.nan
    subject = known_network(kit).subject
    return Training(replace(subject, train=kit.loader(x, y, batch_size=BATCH, shuffle=False)), steps)


def _overflowing_training(kit: Kit) -> Training:
    """At one step the gradient of the weights is not finite, though the loss is; at the others all are zero."""
    x = np.zeros((STEPS * BATCH, FEATURES), np.float32)
    x[AT * BATCH] = LARGE
    layer = kit.linear(FEATURES, 1)
    model = kit.sequential(layer)
    loader = kit.loader(x, np.zeros((len(x), 1), np.float32), batch_size=BATCH, shuffle=False)
    kit.set_weights(layer, np.full((1, FEATURES), SMALL, np.float32), np.zeros(1, np.float32))
    return Training(Subject(model, loader, kit.loss("mse"), kit.optimiser(model, "sgd", lr=0.1)), STEPS)


def _watched(adapter: Adapter, loop: Loop, guard: Guard | None = None, most_waiting: int | None = None) -> Watching:
    watching: Watching = adapter.watch(loop.model, list(loop.optimisers), every=1, overhead=1.0, guard=guard)  # type: ignore[attr-defined]
    if most_waiting is not None and isinstance(watching, ListeningWatch):
        watching.most_waiting = most_waiting
    watching.open()
    try:
        with np.errstate(all="ignore"):
            loop.run(None)
    finally:
        watching.close()
    return watching


def _heard(adapter: Adapter, kit: Kit, training: Training) -> list[Observation]:
    """All that was noted, and what was told at once."""
    told: list[Observation] = []

    def tell(alarm: Alarm) -> Act | None:
        told.extend(alarm.observations)
        return None

    watching = _watched(adapter, kit.loop(training), Guard(tell=tell))
    assert watching.trouble is None, watching.trouble
    return told + watching.drain()


def _is_absent(seen: list[Observation], what: type[Observation] | Role) -> bool:
    return any(isinstance(o, Absent) and o.what == what and o.reason for o in seen)


@rule(Watches)
def steps_are_counted_from_zero(adapter: Adapter, kit: Kit) -> None:
    seen = _heard(adapter, kit, Training(known_network(kit).subject, STEPS))
    assert [o.step for o in seen if isinstance(o, Step)] == list(range(STEPS))
    frames = {o.step for o in seen if isinstance(o, Frame)}
    assert frames <= set(range(STEPS))
    assert 0 in frames


@rule(Watches)
def a_loss_that_is_not_finite_is_met_at_its_step(adapter: Adapter, kit: Kit) -> None:
    seen = _heard(adapter, kit, spoiled_training(kit))
    met = [o.step for o in seen if isinstance(o, NotFinite) and o.what == "loss"]
    assert met[:1] == [AT] or _is_absent(seen, NotFinite), f"met at {met}"
    assert [o.step for o in seen if isinstance(o, Step) and o.loss is None and o.heard] == list(range(AT, STEPS))


@rule(Watches)
def a_gradient_that_is_not_finite_names_its_parameter(adapter: Adapter, kit: Kit) -> None:
    training = _overflowing_training(kit)
    with adapter.bench(training.subject) as bench:  # type: ignore[attr-defined]
        weights = [path for path in bench.paths() if len(bench.parameter(path).shape) == 2]
    seen = _heard(adapter, kit, training)
    met = [o for o in seen if isinstance(o, NotFinite)]
    named = [(o.what, o.step, o.where) for o in met if o.what != "input"]
    assert named[:1] == [("gradient", AT, weights[0])] or _is_absent(seen, NotFinite), f"met: {named}"


@rule(Watches)
def when_nobody_drains_whole_steps_are_dropped_and_counted(adapter: Adapter, kit: Kit) -> None:
    loop = kit.loop(Training(known_network(kit).subject, 1))
    watching = adapter.watch(loop.model, list(loop.optimisers), every=1, overhead=1.0)  # type: ignore[attr-defined]
    short = isinstance(watching, ListeningWatch)
    steps = FEW + STEPS if short else MOST_WAITING + STEPS
    watching = _watched(adapter, kit.loop(Training(known_network(kit).subject, steps)), most_waiting=FEW)
    seen = watching.drain()
    kept = [o.step for o in seen if isinstance(o, Step)]
    assert watching.steps == steps
    assert watching.dropped > 0, "what waits is not bounded"
    assert len(kept) + watching.dropped == steps
    assert {o.step for o in seen if isinstance(o, Frame)} <= set(kept), "a part of a step was kept"
    assert watching.trouble is None


@rule(Watches)
def the_report_says_how_many_steps_were_dropped(adapter: Adapter, kit: Kit) -> None:
    import sleuth

    loop = kit.loop(Training(known_network(kit).subject, FEW + STEPS))
    with sleuth.watch(loop.model, list(loop.optimisers), every=1, directory=None, quiet=True) as w:
        if not isinstance(w.watching, ListeningWatch):
            return  # its bound is too far away for a report of a training in a test
        w.watching.most_waiting = 0
        loop.run(None)
    assert w.watching.dropped == FEW + STEPS
    assert sum(o.steps for o in w.history.many(Dropped)) == FEW + STEPS


@rule(Watches)
def what_is_not_observed_is_said(adapter: Adapter, kit: Kit) -> None:
    seen = _heard(adapter, kit, Training(known_network(kit).subject, STEPS))
    roles = {o.role for o in seen if isinstance(o, Frame)}
    wanted: tuple[type[Observation], ...] = (LossCall, Memory)
    silent = [kind.__name__ for kind in wanted if not any(isinstance(o, kind) for o in seen) and not _is_absent(seen, kind)]
    silent += [role.name for role in Role if role is not Role.INPUT and role not in roles and not _is_absent(seen, role)]
    assert not silent, f"neither observed nor absent for a reason: {', '.join(silent)}"


@rule(Watches)
def after_its_end_everything_is_the_very_object_that_it_was(adapter: Adapter, kit: Kit) -> None:
    for fails in (False, True):
        _leaves_everything_as_it_was(adapter, kit, fails=fails)


def _leaves_everything_as_it_was(adapter: Adapter, kit: Kit, *, fails: bool) -> None:
    kit.loop(Training(known_network(kit).subject, 2)).run(None)  # frameworks put off some of their own work to the first step
    training = spoiled_training(kit, at=0)
    if fails:
        training = Training(replace(training.subject, train=_Failing(training.subject.train, 2)), STEPS)
    loop = kit.loop(training)
    packages = packages_of(kit, loop, native(kit, np.zeros((1, 1), np.float32)))
    things = [loop.model, *loop.optimisers]
    before = attributes(packages, things)
    try:
        _watched(adapter, loop)
    except Exception as error:
        if "the user's own" not in f"{error} {error.__cause__} {error.__context__}":
            raise
        assert fails
    left = changed(before, attributes(packages, things))
    assert not left, f"not as before{' after an exception' if fails else ''}: {', '.join(left[:8])}"

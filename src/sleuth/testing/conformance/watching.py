"""A watch hears what happened and changes nothing."""

import numpy as np

from sleuth.core.contract.adapter import Adapter, Watches
from sleuth.core.observation import Frame, Role, Step
from sleuth.core.statistics import Statistics
from sleuth.testing.conformance.rule import benched, close, first_batch, known_network, rule, weights
from sleuth.testing.kit import Kit
from sleuth.testing.trainings import Loop, Training

STEPS = 12


def _loop(kit: Kit) -> tuple[Loop, Training]:
    training = Training(known_network(kit).subject, STEPS)
    return kit.loop(training), training


def _trained(adapter: Adapter, training: Training) -> list[np.ndarray]:
    """In the order of the model: some frameworks number the layers of a process."""
    with adapter.bench(training.subject) as bench:  # type: ignore[attr-defined]
        return list(weights(adapter, bench).values())


@rule(Watches)
def a_watched_training_ends_in_the_same_weights(adapter: Adapter, kit: Kit) -> None:
    plain, one = _loop(kit)
    plain.run(None)
    watched, other = _loop(kit)
    watching = adapter.watch(watched.model, list(watched.optimisers), every=1, overhead=1.0)  # type: ignore[attr-defined]
    watching.open()
    try:
        watched.run(None)
    finally:
        watching.close()
    assert watching.trouble is None
    assert watching.steps == STEPS
    begun = _trained(adapter, _loop(kit)[1])
    ended, again = _trained(adapter, one), _trained(adapter, other)
    assert all(np.array_equal(a, b) for a, b in zip(ended, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(ended, begun, strict=True)), "nothing was trained"


@rule(Watches)
def a_watch_hears_loss_and_gradients_of_the_first_step(adapter: Adapter, kit: Kit) -> None:
    loop, training = _loop(kit)
    with adapter.bench(training.subject) as bench:  # type: ignore[attr-defined]
        bench.set_training(True)
        batch = first_batch(training.subject)
        expected = bench.gradients(batch)
        gradients = {path: np.array(adapter.values(g)) for path, g in expected.by_path.items()}
    loop, training = _loop(kit)
    watching = adapter.watch(loop.model, list(loop.optimisers), every=1, overhead=1.0)  # type: ignore[attr-defined]
    watching.open()
    try:
        loop.run(None)
    finally:
        watching.close()
    heard = watching.drain()
    steps = [o for o in heard if isinstance(o, Step)]
    assert len(steps) == STEPS
    first = min(steps, key=lambda o: o.step)
    assert first.loss is not None
    assert abs(first.loss - expected.loss) <= 1e-5 * abs(expected.loss)
    roles = {o.role for o in heard if isinstance(o, Frame)}
    assert {Role.GRADIENT, Role.WEIGHT, Role.UPDATE} <= roles
    frame = min((o for o in heard if isinstance(o, Frame) and o.role is Role.GRADIENT), key=lambda o: o.step)
    told = dict(zip(frame.paths, (Statistics.from_row(row) for row in frame.table), strict=True))
    assert len(told) == len(gradients)
    found = sorted(float(s.rms) for s in told.values())
    assert close(np.array(found), np.array(sorted(float(np.sqrt((g.astype(float) ** 2).mean())) for g in gradients.values())))


@rule(Watches)
def an_exception_of_the_loop_is_left_alone(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, _):
        assert bench.paths()
    loop, _ = _loop(kit)
    watching = adapter.watch(loop.model, list(loop.optimisers), every=1, overhead=1.0)  # type: ignore[attr-defined]
    watching.open()
    told = watching.explain(KeyError("the user's own"))
    watching.close()
    assert isinstance(told, list)
    loop.run(None)
    assert watching.steps == 0, "it still listened after its end"

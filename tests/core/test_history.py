"""The history stays bounded and keeps both ends."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sleuth import kernel
from sleuth.core.history import CAPACITY, History, Seen, Thinned
from sleuth.core.observation import Batch, Frame, Role, Split, Step


@given(st.integers(1, 500), st.integers(2, 20))
def test_thinning_keeps_the_first_the_latest_and_the_bound(count: int, capacity: int) -> None:
    thinned = Thinned(capacity)
    for i in range(count):
        thinned.append(i)
    kept = list(thinned)
    assert kept[0] == 0
    assert kept[-1] == count - 1
    assert len(kept) <= capacity + 1
    assert kept == sorted(set(kept))
    assert len(thinned) == count


def test_a_long_run_does_not_grow_the_history() -> None:
    history = History()
    for i in range(CAPACITY * 5):
        history.add(Step(i, float(i)))
    seen = Seen(history)
    assert len(seen.all(Step)) <= CAPACITY + 1
    assert seen.count(Step) == CAPACITY * 5


def frame(step: int, scale: float) -> Frame:
    table = kernel.measure([np.full(4, scale), np.full(4, 2 * scale)])
    return Frame(step, Role.GRADIENT, ("a", "b"), table)


def test_tensors_carry_their_course() -> None:
    history = History()
    for step in range(3):
        history.add(frame(step, 10.0**-step))
    first, last = Seen(history).first(Role.GRADIENT)[0], Seen(history).latest(Role.GRADIENT)[0]
    assert first.rms == 1.0
    assert last.rms == 0.01
    assert last.series.y == (1.0, 0.1, 0.01)


def test_labels_and_features_are_merged_over_batches() -> None:
    history = History()
    parts = np.arange(12.0).reshape(4, 3)
    for index, rows in enumerate((parts[:1], parts[1:])):
        table = kernel.measure(list(rows.T))
        history.add(Batch(Split.TRAIN, index, len(rows), (), None, features=table, labels={index: len(rows)}))
    seen = Seen(history)
    assert seen.labels(Split.TRAIN) == {0: 1, 1: 3}
    assert [f.mean for f in seen.features(Split.TRAIN)] == parts.mean(0).tolist()
    assert seen.labels(Split.VALIDATION) == {}

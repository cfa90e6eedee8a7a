"""What an adapter must do before it can describe or run anything."""

import multiprocessing
import random

import numpy as np

from sleuth.core.contract.adapter import (
    Adapter,
    Attends,
    CheckpointState,
    Compares,
    Credits,
    Describes,
    Discovers,
    Dissects,
    Employs,
    Explains,
    Inspects,
    LayerValues,
    Orders,
    Profiles,
    Replays,
    Routes,
    Shows,
    Steps,
    Substitutes,
    Traces,
    Watches,
    WrapsSteps,
)
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.testing.conformance.rule import CLASSES, FEATURES, native, rule, subject
from sleuth.testing.kit import Kit

CAPABILITIES: tuple[type, ...] = (
    Adapter,
    Describes,
    Steps,
    Substitutes,
    Compares,
    Traces,
    Watches,
    WrapsSteps,
    Discovers,
    Explains,
    Replays,
    Orders,
    Employs,
    LayerValues,
    CheckpointState,
    Dissects,
    Profiles,
    Inspects,
    Routes,
    Shows,
    Credits,
    Attends,
)


@rule(Adapter)
def trees_of_arrays_are_walked_in_order(adapter: Adapter, kit: Kit) -> None:
    one, two = native(kit, np.ones((2, 2), np.float32)), native(kit, np.zeros((2, 1), np.float32))
    tree = {"a": (one, "word", 3), "b": [two]}
    assert [path for path, _ in leaves(tree, adapter.is_array)] == ["a.0", "b.0"]
    doubled = map_arrays(tree, lambda a: a + a, adapter.is_array)
    assert doubled["a"][1:] == ("word", 3)
    assert np.array_equal(adapter.values(doubled["a"][0]), np.full((2, 2), 2.0))
    assert not any(adapter.is_array(thing) for thing in (1, 2.0, "three", None, [1], {"a": 1}))


@rule(Adapter)
def only_models_of_its_own_are_claimed(adapter: Adapter, kit: Kit) -> None:
    model = kit.mlp(FEATURES, CLASSES)
    assert adapter.claims(model)
    assert not any(adapter.claims(thing) for thing in (None, 3, "model", np.zeros(3), [model], type(model), print))


@rule(Adapter)
def a_capability_is_there_as_a_whole_or_not_at_all(adapter: Adapter, kit: Kit) -> None:
    for kind in CAPABILITIES:
        methods: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
        assert isinstance(adapter, kind) or not any(hasattr(adapter, name) for name in methods), kind.__name__


@rule(Adapter)
def random_states_are_preserved(adapter: Adapter, kit: Kit) -> None:
    given, twin = subject(kit), subject(kit)
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]
    try:
        with adapter.preserve(given):
            random.random()
            np.random.random()
            list(given.train)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert random.getstate() == python
    assert np.array_equal(np.random.get_state()[1], numpy)  # type: ignore[index]
    after, untouched = (adapter.values(next(iter(s.train))[1]) for s in (given, twin))
    assert np.array_equal(after, untouched), "the loader's own generator went on"


@rule(Orders)
def samples_are_read_by_position_behind_a_shuffling_loader(adapter: Adapter, kit: Kit) -> None:
    x, y = np.arange(24, dtype=np.float32).reshape(12, 2), np.arange(12)
    if not kit.own_loader:
        return
    rows = adapter.rows(kit.loader(x, y, batch_size=4, shuffle=True))  # type: ignore[attr-defined]
    assert rows.count == 12
    inputs, target = rows.take(np.array([7, 0, 3]))
    assert np.array_equal(adapter.values(inputs), x[[7, 0, 3]])
    assert np.array_equal(adapter.values(target), y[[7, 0, 3]])
    assert adapter.rows([(x, y)]) is None  # type: ignore[attr-defined]


@rule(Employs)
def a_crew_reads_what_it_is_asked_for_and_leaves_nobody_behind(adapter: Adapter, kit: Kit) -> None:
    x, y = np.arange(24, dtype=np.float32).reshape(12, 2), np.arange(12)
    crew = adapter.crew(kit.loader(x, y, batch_size=4, shuffle=True))  # type: ignore[attr-defined]
    assert (crew.count, crew.samples, crew.stream) == (0, 12, False)
    before = multiprocessing.active_children()
    epochs = crew.read([[7, 0], [3, 3]], 2, 2, 60.0)
    assert [[adapter.values(target).tolist() for _, target in epoch] for epoch in epochs] == [[[7, 0], [3, 3]]] * 2
    assert multiprocessing.active_children() == before
    assert adapter.crew([(x, y)]) is None  # type: ignore[attr-defined]

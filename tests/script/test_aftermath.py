"""What is kept for the end: bounded, nothing of the user's, and gone when it was looked at."""

import gc
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters.common.reservoir import MOST_BATCHES
from sleuth.adapters.torch.watching.reservoir import HostReservoir, parts_of, size_of
from sleuth.adapters.torch.watching.watching import TorchWatching
from sleuth.core.contract.kept import Passed
from tests.script.ways import plain, report_of, watched


def test_weights_and_random_states_are_the_same_to_the_last_bit_when_all_was_looked_at(tmp_path: Path) -> None:
    added = report_of(watched("leaves_a_trace.py", options=("--budget", "3"), runs=tmp_path), plain("leaves_a_trace.py"))
    assert "labels-misaligned" in added, "what passed by was examined"


def test_nothing_of_the_users_lives_on_when_a_training_is_over_nor_longer_than_without_keeping() -> None:
    assert _alive_after_each_step(keeps=True) == _alive_after_each_step(keeps=False)


def _alive_after_each_step(keeps: bool) -> list[list[int]]:
    model = nn.Linear(4, 2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = TorchWatching(model, [optimiser], every=1, overhead=0.02, keeps=keeps)
    watching.open()
    given: list[weakref.ref] = []
    alive = []
    try:
        for step in range(12):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            given += [weakref.ref(x), weakref.ref(y)]
            model.train(step % 2 == 0)
            with torch.set_grad_enabled(model.training):
                loss = functional.cross_entropy(model(x), y)
            if model.training:
                loss.backward()
                optimiser.step()
            del x, y, loss
            alive.append([place for place, r in enumerate(given) if r() is not None])
    finally:
        watching.close()
    watching.drain()
    kept = watching.take_kept()
    assert (kept is not None) == keeps
    if kept is not None:
        assert len(kept.train) == 6
        assert sum(len(group.batches) for group in kept.validation) == 6
    given.append(weakref.ref(model))
    del model, optimiser, kept
    gc.collect()
    assert not any(r() is not None for r in given)
    return alive


@pytest.mark.parametrize("rows", [10, 3_000, 70_000])
def test_what_is_kept_stays_within_its_bound_and_holds_some_of_the_end(rows: int) -> None:
    most = 16 << 20
    reservoir, samples = HostReservoir(most), torch.zeros(rows + 7, 16)
    for step in range(500):
        place = reservoir.wants()
        if place is not None:
            parts = parts_of(samples[: rows + step % 7], None, first=place == 0)
            reservoir.keep(place, Passed(step, parts))
        assert reservoir.bytes <= most
    assert reservoir.bytes == sum(size_of(p.parts.raw) for p in reservoir.items)
    assert len(reservoir.items) <= MOST_BATCHES
    assert max(p.step for p in reservoir.items) > 400


def test_a_single_sample_that_is_too_large_is_not_kept_nor_is_what_belongs_to_the_user() -> None:
    assert parts_of(torch.zeros(2, 1 << 20), None) is None
    assert parts_of((torch.zeros(2, 4), object()), None) is None
    assert parts_of({"x": torch.zeros(2, 4), "words": ["a", "b"]}, torch.zeros(2)) is not None

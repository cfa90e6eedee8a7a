"""Which sample of the data set was it: told through loaders, workers, parts and copies."""

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, TensorDataset

import sleuth
from sleuth.core.observation import Suspect
from tests.watch.poisoned import Net
from tests.watch.scene_loops import QUIET, seen


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
        {"num_workers": 1},
        {},
    ],
    ids=["two workers", "one worker", "no workers"],
)
def test_the_index_is_right_with_workers_that_fetch_in_advance_and_live_on(options: dict) -> None:
    x, y = torch.rand(60, 4) + 0.5, torch.rand(60, 1)
    x[41] = -1.0
    order = [i for i in range(60) if i != 41]
    loader = DataLoader(TensorDataset(x, y), 8, sampler=order, **options)
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, directory=None, **QUIET) as w:
        for epoch in range(3):
            if epoch == 2:
                order.insert(29, 41)
            for x, y in loader:
                optimiser.zero_grad()
                functional.mse_loss(model(x), y).backward()
                optimiser.step()
    (suspect,) = seen(w, Suspect)
    assert (suspect.position, suspect.index, suspect.certain) == (5, 41, True)


def _watched_part(data, batches, prepare=lambda x: x, begun: bool = False):
    """Trains on a loader; the sample 17 has no logarithm."""
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    iterator = iter(batches) if begun else None
    with sleuth.watch(model, optimiser, directory=None, **QUIET) as w:
        for x, y in iterator or batches:
            optimiser.zero_grad()
            functional.mse_loss(model(prepare(x)), y).backward()
            optimiser.step()
    return seen(w, Suspect)


def _with_a_sick_sample(size: int = 40) -> TensorDataset:
    x, y = torch.rand(size, 4) + 0.5, torch.rand(size, 1)
    x[17] = -1.0
    return TensorDataset(x, y)


def test_a_part_of_a_data_set_is_told_from_the_whole() -> None:
    data = _with_a_sick_sample()
    (suspect,) = _watched_part(data, DataLoader(Subset(data, list(range(39, 9, -1))), 10))
    assert (suspect.index, suspect.behind) == (39 - 17, 17)


def test_inputs_that_were_copied_on_the_way_are_most_likely_of_the_last_batch() -> None:
    data = _with_a_sick_sample()
    (suspect,) = _watched_part(data, DataLoader(data, 10), prepare=lambda x: x * 1.0)
    assert (suspect.index, suspect.likely_index) == (17, True)


def test_a_slice_of_a_batch_is_found_in_it() -> None:
    data = _with_a_sick_sample()
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, directory=None, **QUIET) as w:
        for x, y in DataLoader(data, 20):
            optimiser.zero_grad()
            for part in range(2):
                rows = slice(part * 10, part * 10 + 10)
                functional.mse_loss(model(x[rows]), y[rows]).backward()
            optimiser.step()
    (suspect,) = seen(w, Suspect)
    assert (suspect.position, suspect.index, suspect.likely_index) == (7, 17, False)


def test_batches_drawn_before_the_watch_have_no_index() -> None:
    data = _with_a_sick_sample()
    (suspect,) = _watched_part(data, DataLoader(data, 10, num_workers=1, prefetch_factor=4), begun=True)
    assert (suspect.position, suspect.index) == (7, None)

"""How far ahead the targets lie, whatever stands between the batch and the loss function."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters import adapter_named
from sleuth.core.observation import Absent, Observation
from sleuth.core.runtime.clock import shared_clock
from sleuth.core.subject import Subject
from sleuth.core.trial import TargetShift
from sleuth.probes.data.reading import reading
from sleuth.probes.data.target_shift import target_shift
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab

CLASSES, LENGTH = 23, 12


class Reader(nn.Module):
    """`returned` makes of the answers (samples, positions, classes) what the model returns."""

    def __init__(self, returned: Callable[[torch.Tensor], Any] = lambda logits: logits) -> None:
        super().__init__()
        self.embed = nn.Embedding(CLASSES, 8)
        self.read = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)
        self.returned = returned

    def forward(self, ids: torch.Tensor) -> Any:
        return self.returned(self.head(self.read(self.embed(ids))[0]))


def flat(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.reshape(-1, CLASSES), target.reshape(-1))


def shifting(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return flat(logits[:, :-1], target[:, 1:])


def masked(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    counts = target % 3 > 0
    return functional.cross_entropy(logits[counts], target[counts])


def by_class(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.transpose(1, 2), target)


def measured(loss: Any, ahead: int, model: nn.Module | None = None) -> Observation:
    """Targets that were cut `ahead` elements after their inputs."""
    torch.manual_seed(0)
    text = torch.randint(0, CLASSES, (64, LENGTH + 4))
    data = text[:, :LENGTH], text[:, ahead : ahead + LENGTH]
    adapter = adapter_named("torch")
    model = model or Reader()
    lab = Lab(Subject(model, data, loss, torch.optim.SGD(model.parameters(), 0.1)), adapter, 60.0, shared_clock())
    seen: list[Observation] = []
    with adapter.preserve(lab.subject), adapter.bench(lab.subject) as bench:
        lab.bench_ = bench
        for probe in (reading, target_shift):
            run_probe(probe, lab, seen.append)
    return seen[-1]


@pytest.mark.parametrize("loss", [flat, masked, by_class])
@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_the_shift_of_the_labels_is_found_through_views_masks_and_class_axes(loss: Any, ahead: int) -> None:
    seen = measured(loss, ahead)
    assert isinstance(seen, TargetShift)
    assert seen.best == ahead
    assert seen.shares[ahead] == 1.0
    assert all(share < 0.3 for k, share in seen.shares.items() if k != ahead)
    assert seen.chance == pytest.approx(1 / CLASSES, rel=0.2)
    assert (seen.input, seen.axis, seen.length, seen.integers) == ("", 1, LENGTH, True)


@pytest.mark.parametrize(("ahead", "found"), [(0, 1), (1, 2)])
def test_a_loss_that_shifts_by_itself_is_told_from_the_labels_it_is_given(ahead: int, found: int) -> None:
    seen = measured(shifting, ahead)
    assert isinstance(seen, TargetShift)
    assert (seen.best, seen.given[ahead]) == (found, 1.0)
    assert seen.ignored == pytest.approx(1 / LENGTH)


def test_what_the_loss_leaves_out_does_not_count() -> None:
    def left_out(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return flat(logits, target.where(target > CLASSES // 2, -100))

    seen = measured(left_out, 1)
    assert isinstance(seen, TargetShift)
    assert (seen.best, seen.shares[1]) == (1, 1.0)
    assert 0.3 < seen.ignored < 0.7


def test_a_class_for_each_sample_has_no_shift() -> None:
    seen = measured(lambda out, y: functional.cross_entropy(out, y[:, 0]), 1, Reader(lambda logits: logits.mean(1)))
    assert isinstance(seen, Absent)


def test_unrelated_labels_agree_at_no_shift() -> None:
    def other(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return flat(logits, (target * 7 + torch.arange(LENGTH)) % CLASSES)

    seen = measured(other, 1)
    assert isinstance(seen, TargetShift)
    assert seen.best is None
    assert np.mean(list(seen.shares.values())) < 0.2

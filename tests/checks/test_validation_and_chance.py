"""Validation far below training: made so by dropout, augmentation and balancing on purpose, or by rows that are not alike."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import sleuth
from sleuth import Report
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.history import Seen
from sleuth.core.observation import Architecture, Evaluation, LossCall, Observation, Predictions, Recurrence, Split, Step
from sleuth.core.settings import Configuration
from sleuth.testing import Loop
from tests.material import digits
from tests.watched import watched

X, Y = (torch.as_tensor(part) for part in digits())
NAME = "validation-too-good"
EPOCHS = 12


HARD = Y >= 5
# Whoever wrote these labels knew only that it was one of five.
CARELESS = torch.where(HARD, torch.randint(5, 10, Y.shape, generator=torch.Generator().manual_seed(0)), Y)
EASY_ROWS = torch.tensor([row for row in range(1200, len(Y)) if Y[row] < 5])


class Net(nn.Module):
    """Whose dropout is no layer."""

    def __init__(self, width: int = 32, drop: float = 0.0) -> None:
        super().__init__()
        self.one, self.two, self.drop = nn.Linear(64, width), nn.Linear(width, 10), drop

    def forward(self, x: Tensor) -> Tensor:
        return self.two(functional.dropout(torch.relu(self.one(x)), self.drop, self.training))


def training(
    model: nn.Module,
    labels: Tensor = Y,
    *,
    lr: float = 1e-2,
    rows: Callable[[], Tensor] = lambda: torch.randperm(1200),
    validation: Tensor | None = None,
) -> Loop:
    held_out = torch.arange(1200, len(X)) if validation is None else validation
    optimiser = torch.optim.Adam(model.parameters(), lr)

    def run(w: object) -> None:
        for _ in range(EPOCHS):
            model.train()
            for batch in rows().split(40):
                optimiser.zero_grad()
                functional.cross_entropy(model(X[batch]), labels[batch]).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                w.log(val_loss=functional.cross_entropy(model(X[held_out]), Y[held_out]).item())

    return Loop(model, [optimiser], run)


def trained(model: nn.Module, *args: Tensor, **options: Any) -> Report:
    # Samples that come again are noticed on the steps that are listened to: here on all of them.
    return watched(training(model, *args, **options), select=[NAME], overhead=0.9)


def partly_careless() -> Tensor:
    """The first half of the training rows."""
    rng = np.random.default_rng(0)
    wrong = torch.as_tensor((rng.random(len(Y)) < 0.6) & (np.arange(len(Y)) < 600))
    return torch.where(wrong, torch.as_tensor(rng.integers(0, 10, len(Y))), Y)


@pytest.mark.parametrize("layers", [(), (nn.Dropout(0.0),)])
def test_rows_that_are_better_than_the_rest_of_training_are_named(layers: tuple[nn.Module, ...]) -> None:
    """A layer of dropout that drops nothing explains nothing."""
    report = trained(nn.Sequential(Net(), *layers), partly_careless(), validation=torch.arange(600, 1200))
    assert [c.finding.name for c in report.culprits] == [NAME]
    assert "labels of both" in report.culprits[0].finding.fix


def test_validation_on_a_few_classes_says_so() -> None:
    """The gap is not much larger than it must be: not every start of the weights shows it."""
    culprits = []
    for seed in range(4):
        torch.manual_seed(seed)
        culprits += trained(Net(), CARELESS, lr=3e-3, validation=EASY_ROWS).culprits
    assert culprits
    assert all("5 of the training's 10 classes" in c.finding.summary for c in culprits)


def test_classes_that_training_sees_more_often_on_purpose_explain_the_difference() -> None:
    weights = torch.where(HARD[:1200], 4.0, 1.0)
    one_of_each = torch.stack([(label == Y).nonzero()[-1, 0] for label in range(5, 10)])
    report = trained(
        Net(),
        CARELESS,
        rows=lambda: torch.multinomial(weights, 1200, replacement=True),
        validation=torch.cat([EASY_ROWS, one_of_each]),
    )
    assert NAME in report.clear


def test_dropout_that_no_layer_shows_explains_the_difference() -> None:
    report = trained(Net(width=128, drop=0.9))
    assert NAME in report.clear


def test_noise_of_small_batches_in_a_normalisation_explains_the_difference() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
    report = trained(model, partly_careless(), validation=torch.arange(600, 1200))
    assert NAME in report.clear


@pytest.fixture(scope="module")
def heard() -> list[Observation]:
    """What was heard of a training whose validation is too good."""
    torch.manual_seed(0)
    model = Net()
    loop = training(model, partly_careless(), validation=torch.arange(600, 1200))
    with sleuth.watch(model, loop.optimisers, directory=None, quiet=True, select=[NAME]) as w:
        loop.run(w)
    w.report()
    seen = Seen(w.history)
    kinds = (Step, Evaluation, LossCall, Recurrence, Predictions)
    return [seen.one(Architecture), *(observation for kind in kinds for observation in seen.all(kind))]


def judged(observations: Iterable[Observation]) -> bool:
    engine = Engine(all_checks(), Configuration(select=[NAME]))
    for observation in observations:
        engine.emit(observation)
    return bool(engine.judge().findings)


def rows_that_are_new(o: Observation) -> Observation:
    return replace(o, again=o.rows // 4) if isinstance(o, Recurrence) else o


def random_numbers(o: Observation) -> Observation:
    return replace(o, drew=True) if isinstance(o, Recurrence) else o


def a_device_whose_random_numbers_are_not_seen(o: Observation) -> Observation:
    return replace(o, drew=None) if isinstance(o, Recurrence) else o


def smoothed_labels(o: Observation) -> Observation:
    return replace(o, options={**o.options, "label_smoothing": 0.1}) if isinstance(o, LossCall) else o


def a_second_backward_at_other_weights(o: Observation) -> Observation:
    return replace(o, counts={**o.counts, "backward": 2}) if isinstance(o, Step) else o


def a_validation_of_few_samples(o: Observation) -> Observation:
    if isinstance(o, Predictions) and o.split is Split.VALIDATION:
        return replace(o, targets={label: 1 for label in range(4)})
    return o


def losses_that_a_few_hard_samples_make(o: Observation) -> Observation:
    if isinstance(o, Step):
        return replace(o, loss=o.loss / 20)
    return replace(o, metrics={"loss": o.metrics["loss"] / 20}) if isinstance(o, Evaluation) and "loss" in o.metrics else o


REASONS = [
    rows_that_are_new,
    random_numbers,
    a_device_whose_random_numbers_are_not_seen,
    smoothed_labels,
    a_second_backward_at_other_weights,
    a_validation_of_few_samples,
    losses_that_a_few_hard_samples_make,
]


@pytest.mark.parametrize("reason", REASONS)
def test_any_other_reason_for_the_difference_is_believed(
    heard: list[Observation], reason: Callable[[Observation], Observation]
) -> None:
    assert judged(heard)
    assert not judged(map(reason, heard))

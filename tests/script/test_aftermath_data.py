"""What is wrong with data is found after the end, whatever brought it to the model."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from sleuth.core.report import Report
from tests.material import cancer, digits
from tests.script.looking_back import Batches, ask, looked_back, names, train

SIZE = 32
X, Y = (torch.as_tensor(part) for part in digits())
ORDER = torch.randperm(len(X), generator=torch.Generator().manual_seed(1))
X, Y = X[ORDER], Y[ORDER]
# Memory of its own each, as after train_test_split.
TRAIN, OTHER = (X[:600].clone(), Y[:600].clone()), (X[600:900].clone(), Y[600:900].clone())

Bring = Callable[[torch.Tensor, torch.Tensor, bool], Batches]


def by_loader(x: torch.Tensor, y: torch.Tensor, shuffle: bool) -> Batches:
    yield from DataLoader(TensorDataset(x, y), batch_size=SIZE, shuffle=shuffle)


def by_slices(x: torch.Tensor, y: torch.Tensor, shuffle: bool) -> Batches:
    for start in range(0, len(x), SIZE):
        yield x[start : start + SIZE], y[start : start + SIZE]


def by_generator(x: torch.Tensor, y: torch.Tensor, shuffle: bool) -> Batches:
    for rows in (torch.randperm(len(x)) if shuffle else torch.arange(len(x))).split(SIZE):
        yield x[rows], y[rows]


WAYS = pytest.mark.parametrize("bring", [by_loader, pytest.param(by_slices, marks=pytest.mark.long), by_generator])


def run(
    bring: Bring,
    training: tuple[torch.Tensor, torch.Tensor] = TRAIN,
    validation: tuple[torch.Tensor, torch.Tensor] = OTHER,
    epochs: int = 5,
    shuffle: bool = True,
) -> Report:
    def loop(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(epochs):
            train(model, optimiser, bring(*training, shuffle))
            ask(model, bring(*validation, False))

    return looked_back(loop, training[0].shape[1], 10)


@WAYS
def test_validation_samples_that_were_trained_on_are_found(bring: Bring) -> None:
    rows = 480 + torch.randperm(420, generator=torch.Generator().manual_seed(0))
    report = run(bring, validation=(X[rows], Y[rows]))
    assert names(report) == {"train-val-overlap"}


@WAYS
def test_labels_of_other_samples_are_found(bring: Bring) -> None:
    report = run(bring, training=(TRAIN[0], TRAIN[1].roll(1)))
    assert names(report) == {"labels-misaligned"}


@WAYS
def test_validation_on_another_scale_is_found(bring: Bring) -> None:
    report = run(bring, validation=(16 * OTHER[0], OTHER[1]))
    assert names(report) == {"train-val-shift"}


@WAYS
def test_a_column_that_tells_the_label_is_found(bring: Bring) -> None:
    x, y = (torch.as_tensor(part) for part in cancer())
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(0))
    x = torch.cat([x, (2.0 * y - 1 + 0.01 * noise)[:, None]], 1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    report = run(bring, training=(x[order[:400]], y[order[:400]]), validation=(x[order[400:]], y[order[400:]]))
    assert names(report) == {"target-leak"}


@WAYS
def test_samples_in_the_order_of_their_labels_are_found(bring: Bring) -> None:
    order = torch.argsort(TRAIN[1], stable=True)
    report = run(bring, training=(TRAIN[0][order], TRAIN[1][order]), shuffle=False)
    assert report.culprits[0].finding.name == "data-not-shuffled"


@WAYS
def test_a_rare_class_is_found(bring: Bring) -> None:
    rows = torch.cat([torch.where(Y == 0)[0][:150], torch.where(Y == 1)[0][:2], torch.where(Y == 2)[0][:150]])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    assert "class-imbalance" in names(run(bring, training=(X[rows], Y[rows])))


def test_copies_within_the_data_set_of_a_loader_are_found() -> None:
    x, y = torch.cat([TRAIN[0], TRAIN[0][:300]]), torch.cat([TRAIN[1], TRAIN[1][:300]])
    assert "duplicate-samples" in names(run(by_loader, training=(x, y)))


def test_a_loader_that_begins_anew_at_each_step_is_found() -> None:
    def anew() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(80):
            seeded = torch.Generator().manual_seed(0)
            x, y = next(iter(DataLoader(TensorDataset(*TRAIN), batch_size=SIZE, shuffle=True, generator=seeded)))
            yield 2 * x - 1, y

    report = looked_back(lambda model, optimiser: train(model, optimiser, anew()), 64, 10)
    assert report.culprits[0].finding.name == "same-batch-every-step"


def test_batches_that_come_out_equal_are_found_where_others_are_answered_worse() -> None:
    def anew() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(300):
            rows = torch.randint(0, len(TRAIN[0]), (SIZE,), generator=torch.Generator().manual_seed(3))
            yield TRAIN[0][rows], TRAIN[1][rows]

    def loop(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(2):
            train(model, optimiser, anew())
            ask(model, by_slices(*OTHER, False))

    assert looked_back(loop, 64, 10).culprits[0].finding.name == "same-batch-every-step"

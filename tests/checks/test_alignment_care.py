"""labels-misaligned: hard but honest tasks are not accused, and what cannot be tested says why."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from sleuth import Subject
from sleuth.probes.learners.features import compact, tabulate
from sleuth.probes.learners.learnability import Learnability
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.targets import encode
from tests.checks.alignment_material import (
    Pair,
    a_day_ahead,
    alone,
    explained_by_two_percent,
    fading,
    four_percent_better,
    hourly,
    independent,
    judge,
    latent,
    loader,
    modular_sum,
    next_return,
    next_value,
    pairs_of_digits,
    shuffled,
    topics,
    training,
    walks,
    weekly,
)
from tests.material import diabetes, digit_images, digits


@pytest.mark.parametrize("task", [four_percent_better, explained_by_two_percent])
@pytest.mark.parametrize("inputs", [independent, latent])
def test_a_hard_but_honest_task_is_not_accused(inputs, task) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = inputs(rng)
        assert judge(training(x, task(x, rng))).finding is None


@pytest.mark.parametrize("material", [modular_sum, pairs_of_digits, next_value, next_return])
def test_a_task_that_simple_learners_fail_is_not_accused(material) -> None:
    for seed in range(3):
        assert judge(training(*material(seed))).finding is None


@pytest.mark.parametrize("material", [walks, fading, hourly, weekly, a_day_ahead])
def test_series_in_time_are_not_accused_of_a_shift(material) -> None:
    for seed in range(6):
        assert alone(*material(seed)).finding is None


def test_the_search_among_all_shifts_keeps_its_error_rate() -> None:
    """Of 60 sets of shuffled labels six are allowed p ≤ 0.1 for the best of all orders; the bound is a careful one."""
    x, y = (a[:200] for a in diabetes())
    moved = [alone(*shuffled((x, y), seed)).trial.moved for seed in range(60)]
    assert np.mean([m.p_value <= 0.1 for m in moved]) <= 0.15
    assert all(m.p_value > 1e-3 for m in moved)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_labels_of_which_most_are_wrong_still_belong(share: float) -> None:
    x, y = digits()
    rng = np.random.default_rng(0)
    wrong = np.flatnonzero(rng.random(len(y)) < share)
    y = y.copy()
    y[wrong] = y[rng.permutation(wrong)]
    assert judge(training(x, y)).is_clear


def test_too_few_samples_cannot_tell() -> None:
    x, y = shuffled((digits()[0][:60], digits()[1][:60]))
    assert "cannot tell from 60 samples" in (judge(training(x, y)).reason or "")
    assert "cannot tell from 20 samples" in (judge(training(x[:20], y[:20])).reason or "")


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (digits()[0], digits()[0], "the target is the input itself"),
        (topics()[0], np.roll(topics()[0], -1, axis=1), "one a position"),
        (digits()[0], np.zeros_like(digits()[1]), "the same target"),
        (digits()[0], np.arange(1797), "too few samples a class"),
        (np.ones_like(digits()[0]), digits()[1], "the inputs do not vary"),
        (digit_images()[0], digit_images()[0][:, 0], "one value a position"),
    ],
)
def test_what_cannot_be_tested_says_why(x: np.ndarray, y: np.ndarray, reason: str) -> None:
    subject = Subject(nn.Linear(1, 1), loader(x, y), nn.MSELoss())
    assert reason in (judge(subject).reason or "")


def test_the_target_of_a_step_of_the_users_own_is_not_guessed() -> None:
    parts = [torch.randn(64, 4), torch.randint(0, 2, (64,)), torch.randn(64), torch.zeros(64)]
    subject = Subject(nn.Linear(4, 1), [tuple(parts)], step=lambda model, batch: model(batch[0]).mean())
    assert "split=" in (judge(subject).reason or "")


class OnlyInWorkers(Dataset):
    """Can be read through its loader alone."""

    def __init__(self) -> None:
        self.reads = 0

    def __len__(self) -> int:
        return 1797

    def __getitem__(self, index: int) -> Pair:
        self.reads += 1
        if self.reads > 1797:
            raise OSError("the file is closed")
        return digits()[0][index], digits()[1][index]


def test_a_data_set_that_cannot_be_read_by_position_is_judged_by_what_its_loader_gave() -> None:
    subject = training(*digits())
    verdict = judge(Subject(subject.model, DataLoader(OnlyInWorkers(), batch_size=32), subject.loss, subject.optimizer))
    assert verdict.is_clear
    assert verdict.trial is not None
    assert verdict.trial.moved is None


def test_the_model_is_left_as_it_was() -> None:
    subject = training(*shuffled(digits()))
    before = {name: value.clone() for name, value in subject.model.state_dict().items()}
    judge(subject)
    assert all(torch.equal(value, before[name]) for name, value in subject.model.state_dict().items())
    assert not subject.optimizer.state


def test_the_p_value_keeps_its_error_rate() -> None:
    """Of 200 sets of shuffled labels about a tenth get p ≤ 0.1, with the same learners over the same inputs."""
    x, y = (a[:150] for a in diabetes())
    rng = np.random.default_rng(0)
    bank = Bank(tabulate(compact(x), rng), rng)
    question = Learnability(bank, encode([y], compact(x)).columns, rng)
    orders = np.array([rng.permutation(len(y)) for _ in range(200)])
    p_values = np.array([result.p_value for result in question.test(orders)])
    assert 0.04 <= np.mean(p_values <= 0.1) <= 0.18
    assert np.mean(p_values <= 0.01) <= 0.04


def test_leave_one_out_is_what_refitting_without_the_sample_gives() -> None:
    rng = np.random.default_rng(0)
    table = tabulate(compact(diabetes()[0][:60]), rng)
    bank = Bank(table, rng)
    ridge = bank.ridges[0]
    y = rng.normal(size=(60, 1)).astype(np.float32)
    y -= y.mean()
    predicted = ridge.predict(y, ridge.basis.T @ y)
    # The penalty behind the shrinkage: s² / (s² + α), the same for every direction.
    singular = np.linalg.norm(ridge.basis.T @ (table - table.mean(0)), axis=1)
    alpha = float(np.median(singular**2 * (1 / ridge.shrinkage - 1)))
    for row in (0, 31):
        others = np.delete(np.arange(60), row)
        centre = (table - table.mean(0))[others]
        design = np.column_stack([np.ones(59), centre])
        penalty = alpha * np.diag([0.0] + [1.0] * table.shape[1])
        weights = np.linalg.solve(design.T @ design + penalty, design.T @ y[others])
        expected = np.concatenate([[1.0], (table - table.mean(0))[row]]) @ weights
        assert predicted[row, 0] == pytest.approx(expected[0], abs=2e-3)


@pytest.mark.long
@pytest.mark.parametrize("task", [four_percent_better, explained_by_two_percent])
def test_none_of_forty_hard_but_honest_tasks_is_accused(task) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = latent(rng)
        assert judge(training(x, task(x, rng))).finding is None


@pytest.mark.long
@pytest.mark.parametrize(("material", "least"), [(digits, 16), (digit_images, 16), (topics, 14)])
def test_most_shuffled_sets_are_named(material: Callable[[], Pair], least: int) -> None:
    assert sum(judge(training(*shuffled(material(), seed))).is_accused for seed in range(20)) >= least

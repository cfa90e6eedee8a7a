"""labels-misaligned: shuffled and shifted labels are named."""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset

from sleuth import Subject
from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity
from tests.checks.alignment_material import Pair, judge, shuffled, topics, training
from tests.material import cancer, diabetes, digit_images, digits, wine


def must(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


def mixed(pair: Pair, seed: int = 0) -> Pair:
    order = np.random.default_rng(seed).permutation(len(pair[1]))
    return pair[0][order], pair[1][order]


def exclusive_or(seed: int = 0) -> Pair:
    x = np.random.default_rng(seed).normal(size=(1500, 6)).astype(np.float32)
    return x, ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int64)


def parity(seed: int = 0) -> Pair:
    bits = np.random.default_rng(seed).integers(0, 2, (2000, 10))
    return bits.astype(np.float32), bits[:, :3].sum(1) % 2


def tones(seed: int = 0) -> Pair:
    """Signals whose phase is random: only the spectrum tells."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 600)
    waves = np.sin(2 * np.pi * (np.array([0.03, 0.05, 0.08, 0.12])[labels, None] * np.arange(512) + rng.random((600, 1))))
    return (waves + rng.normal(size=waves.shape)).astype(np.float32)[:, None], labels


def next_letter(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(27, 0.15), size=27)
    text = [0]
    for _ in range(2002):
        text.append(int(rng.choice(27, p=table[text[-1]])))
    letters = np.array(text)
    return np.lib.stride_tricks.sliding_window_view(letters, 3)[:2000].copy(), letters[3:2003].copy()


HEALTHY = [digits, digit_images, cancer, wine, diabetes, topics, exclusive_or, parity, tones, next_letter]


@pytest.mark.parametrize("material", HEALTHY)
def test_labels_that_belong_are_clear(material: Callable[[], Pair]) -> None:
    assert judge(training(*material())).is_clear


@pytest.mark.parametrize("material", [digits, digit_images, topics])
def test_shuffled_labels_of_many_classes_are_an_error(material: Callable[[], Pair]) -> None:
    finding = judge(training(*shuffled(material()))).finding
    assert finding is not None
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


@pytest.mark.parametrize("material", [cancer, digits])
def test_validation_that_is_in_order_convicts_shuffled_training(material: Callable[[], Pair]) -> None:
    x, y = mixed(material())
    cut = len(y) * 3 // 4
    verdict = judge(training(*shuffled((x[:cut], y[:cut])), validation=(x[cut:], y[cut:])))
    assert verdict.is_accused


def test_validation_is_asked_though_the_share_of_time_is_used_up() -> None:
    def clock() -> float:
        """By then the test of training has taken more than the probe's share of sixty seconds."""
        return 12.0 if sys._getframe(2).f_code.co_name == "_with_validation" else 0.0

    x, y = mixed(cancer())
    cut = len(y) * 3 // 4
    assert judge(training(*shuffled((x[:cut], y[:cut])), validation=(x[cut:], y[cut:])), clock).is_accused


@pytest.mark.parametrize("material", [cancer, diabetes, wine])
def test_shuffled_outcomes_of_few_samples_cannot_be_told_from_a_hard_task(material: Callable[[], Pair]) -> None:
    for seed in range(3):
        assert judge(training(*shuffled(material(), seed))).finding is None


@pytest.mark.parametrize("material", [digits, cancer, diabetes, wine, topics])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_shift_is_found_behind_a_shuffling_loader_and_named(material: Callable[[], Pair], rows: int) -> None:
    x, y = mixed(material())
    finding = judge(training(x, np.roll(y, rows, axis=0))).finding
    assert finding is not None
    assert finding.severity is Severity.ERROR
    assert f"np.roll(y, {-rows})" in finding.fix


@pytest.mark.parametrize("material", [digits, cancer, diabetes, wine])
@pytest.mark.parametrize("rows", [7, 31, 80])
def test_a_shift_by_any_number_of_rows_is_found_and_named(material: Callable[[], Pair], rows: int) -> None:
    x, y = mixed(material())
    finding = judge(training(x, np.roll(y, rows, axis=0))).finding
    assert finding is not None
    assert finding.severity is Severity.ERROR
    assert f"np.roll(y, {-rows})" in finding.fix


def test_a_shift_of_forty_rows_is_found_in_a_set_too_large_to_be_read_whole() -> None:
    """Read in runs of 128 neighbours: the shift leaves two thirds of each run."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, 8)).astype(np.float32)
    y = (x @ rng.normal(size=(8, 5))).argmax(1)
    assert "np.roll(y, -40)" in must(judge(training(x, np.roll(y, 40))).finding).fix
    assert judge(training(x, y)).is_clear


def test_a_shift_is_found_although_classes_follow_each_other() -> None:
    """The digits come in an order that repeats, so that shifted labels can still be learned a little."""
    x, y = digits()
    verdict = judge(training(x, np.roll(y, 1)))
    assert verdict.trial is not None
    assert verdict.trial.p_value < 0.01
    assert verdict.finding is not None
    assert verdict.finding.confidence is Confidence.CERTAIN


def test_a_reversed_order_is_found() -> None:
    x, y = mixed(cancer())
    finding = judge(training(x, y[::-1].copy())).finding
    assert finding is not None
    assert "reverse order" in finding.summary


def test_a_shift_in_plain_arrays_and_below_a_random_split_is_found() -> None:
    x, y = mixed(digits())
    subject = training(x, np.roll(y, 1))
    whole = subject.train.dataset
    part = Subset(whole, np.random.default_rng(1).permutation(len(y))[:1400].tolist())
    for train in ((x, np.roll(y, 1)), whole, DataLoader(part, batch_size=32, shuffle=True)):
        finding = judge(Subject(subject.model, train, subject.loss, subject.optimizer)).finding
        assert finding is not None
        assert "np.roll(y, -1)" in finding.fix


def test_a_shift_of_a_target_that_may_lie_in_the_future_is_at_most_a_hint() -> None:
    x, y = mixed(diabetes())
    verdict = judge(training(x, np.roll(y, -1, axis=0)))
    assert verdict.finding is not None
    assert verdict.finding.severity is Severity.HINT


class Slow(nn.Module):
    """Each call takes a minute, as one does that has to be compiled first."""

    def __init__(self, model: nn.Module, wait: Callable[[], None]) -> None:
        super().__init__()
        self.model, self.wait = model, wait

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.wait()
        return self.model(x)


def test_validation_is_asked_before_a_model_that_takes_all_the_time() -> None:
    x, y = mixed(digits())
    cut = len(y) * 3 // 4
    subject = training(*shuffled((x[:cut], y[:cut])), validation=(x[cut:], y[cut:]))
    minutes: list[None] = []
    slow = Slow(subject.model, lambda: minutes.append(None))
    verdict = judge(replace(subject, model=slow), clock=lambda: 60.0 * len(minutes))
    assert verdict.trial is not None
    assert verdict.trial.model_p_value is None
    assert "in validation and nothing in training" in must(verdict.finding).summary


def test_a_shift_that_could_be_a_forecast_is_an_error_where_validation_is_in_order() -> None:
    x, y = mixed(diabetes())
    verdict = judge(training(x[:340], np.roll(y[:340], -1, axis=0), validation=(x[340:], y[340:])))
    assert must(verdict.finding).severity is Severity.ERROR
    verdict = judge(training(x[:340], np.roll(y[:340], -1, axis=0), validation=(x[340:], np.roll(y[340:], -1, axis=0))))
    assert must(verdict.finding).severity is Severity.HINT


def test_a_label_that_sums_up_the_next_recording_is_no_forecast_of_its_values() -> None:
    """The roughness of a wave tells its frequency, but nobody finds that number in the recording itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    angle = np.arange(24) * np.array([0.25, 0.6, 1.1])[y][:, None] + rng.uniform(0, 6, (600, 1))
    x = (np.sin(angle) + 0.1 * rng.normal(size=angle.shape)).astype(np.float32)[..., None]
    trial = judge(training(x, np.roll(y, -1))).trial
    assert trial is not None
    assert trial.moved is not None
    assert (trial.moved.rows, trial.moved.contained < 0.5) == (1, True)

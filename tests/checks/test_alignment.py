"""labels-misaligned: shuffled and shifted labels are named, hard but honest tasks are not accused."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from sleuth import Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.labels_misaligned import labels_misaligned
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity
from sleuth.core.trial import Alignment
from sleuth.probes.data.alignment import alignment
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.learners.features import compact, tabulate
from sleuth.probes.learners.learnability import Learnability
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.targets import encode
from tests.material import cancer, diabetes, digit_images, digits, wine

Pair = tuple[np.ndarray, np.ndarray]


class Recurrent(nn.Module):
    def __init__(self, tokens: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, 16)
        self.recurrent = nn.GRU(16, 32, batch_first=True)
        self.last = nn.Linear(32, classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.last(self.recurrent(self.embedding(ids))[0][:, -1])


@dataclass(frozen=True)
class Verdict:
    finding: Finding | None
    reason: str | None
    trial: Alignment | None

    @property
    def is_clear(self) -> bool:
        return self.finding is None and self.reason is None

    @property
    def is_accused(self) -> bool:
        return self.finding is not None and self.finding.severity is not Severity.HINT


def judge(subject: Subject, clock: Callable[[], float] = time.monotonic) -> Verdict:
    lab, engine = Lab(subject, ADAPTER, 60.0, clock), Engine([labels_misaligned])
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        lab.bench_ = bench
        run_probe(reading, lab, engine.emit)
        run_probe(alignment, lab, engine.emit)
    judged = engine.judge()
    reason = judged.not_examined.get("labels-misaligned")
    return Verdict(next(iter(judged.findings), None), reason, engine.history.single(Alignment))


def training(x: np.ndarray, y: np.ndarray, validation: Pair | None = None) -> Subject:
    classes = int(y.max()) + 1 if y.dtype.kind == "i" else 1
    model = (
        Recurrent(int(x.max()) + 1, classes)
        if x.dtype.kind == "i"
        else nn.Sequential(nn.Flatten(), nn.Linear(x[0].size, 64), nn.ReLU(), nn.Linear(64, classes))
    )
    loss = nn.CrossEntropyLoss() if y.dtype.kind == "i" else nn.MSELoss()
    held_out = None if validation is None else loader(*validation, shuffle=False)
    return Subject(model, loader(x, y), loss, torch.optim.Adam(model.parameters(), lr=1e-3), held_out)


def loader(x: np.ndarray, y: np.ndarray, shuffle: bool = True) -> DataLoader:
    return DataLoader(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)), batch_size=32, shuffle=shuffle)


def must(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


def alone(x: np.ndarray, y: np.ndarray) -> Verdict:
    """With a model that cannot try: quick, for what the orders of the targets tell."""
    return judge(Subject(nn.Linear(1, 1), loader(x, y), nn.MSELoss()))


def shuffled(pair: Pair, seed: int = 0) -> Pair:
    return pair[0], pair[1][np.random.default_rng(seed).permutation(len(pair[1]))]


def mixed(pair: Pair, seed: int = 0) -> Pair:
    order = np.random.default_rng(seed).permutation(len(pair[1]))
    return pair[0][order], pair[1][order]


def topics(seed: int = 0, samples: int = 2000) -> Pair:
    """Sentences of 24 tokens about one of five topics."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(500, 0.05), size=5)
    labels = rng.integers(0, 5, samples)
    return np.stack([rng.choice(500, 24, p=words[label]) for label in labels]), labels


def latent(rng: np.random.Generator, width: int = 20) -> np.ndarray:
    """Columns that depend on four hidden ones, as those of real tables do."""
    return (rng.normal(size=(2000, 4)) @ rng.normal(size=(4, width)) + 0.5 * rng.normal(size=(2000, width))).astype(np.float32)


def independent(rng: np.random.Generator, width: int = 20) -> np.ndarray:
    return rng.normal(size=(2000, width)).astype(np.float32)


def four_percent_better(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two classes, of which the best possible guess gets 54 % right."""
    score = x @ rng.normal(size=x.shape[1])
    return np.where(rng.random(len(x)) < 0.54, score > np.median(score), score <= np.median(score)).astype(np.int64)


def explained_by_two_percent(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    score = x @ rng.normal(size=x.shape[1])
    return (np.sqrt(0.02) * score / score.std() + np.sqrt(0.98) * rng.normal(size=len(x))).astype(np.float32)[:, None]


def exclusive_or(seed: int = 0) -> Pair:
    x = np.random.default_rng(seed).normal(size=(1500, 6)).astype(np.float32)
    return x, ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int64)


def parity(seed: int = 0) -> Pair:
    bits = np.random.default_rng(seed).integers(0, 2, (2000, 10))
    return bits.astype(np.float32), bits[:, :3].sum(1) % 2


def modular_sum(seed: int = 0) -> Pair:
    """Digits to be added modulo 5, padded: nothing that simple learners could find."""
    rng = np.random.default_rng(seed)
    ids = np.where(np.arange(16) < rng.integers(4, 17, (2000, 1)), rng.integers(1, 10, (2000, 16)), 0)
    return ids, ids.sum(1) % 5


def tones(seed: int = 0) -> Pair:
    """Signals whose phase is random: only the spectrum tells."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 600)
    waves = np.sin(2 * np.pi * (np.array([0.03, 0.05, 0.08, 0.12])[labels, None] * np.arange(512) + rng.random((600, 1))))
    return (waves + rng.normal(size=waves.shape)).astype(np.float32)[:, None], labels


def pairs_of_digits(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    (x, y), first, second = digits(), *rng.integers(0, 1797, (2, 2000))
    return np.concatenate([x[first], x[second]], axis=1), (y[first] == y[second]).astype(np.int64)


def next_value(seed: int = 0) -> Pair:
    """White noise in windows, each with the value that comes next: unpredictable, but honest."""
    series = np.random.default_rng(seed).normal(size=2100).astype(np.float32)
    return np.lib.stride_tricks.sliding_window_view(series, 16)[:2000].copy(), series[16:2016, None].copy()


def next_return(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    returns = (rng.standard_t(4, size=(2001, 8)) + rng.normal(size=(2001, 1))).astype(np.float32)
    return returns[:-1], returns[1:, :1].copy()


def next_letter(seed: int = 0) -> Pair:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(27, 0.15), size=27)
    text = [0]
    for _ in range(2002):
        text.append(int(rng.choice(27, p=table[text[-1]])))
    letters = np.array(text)
    return np.lib.stride_tricks.sliding_window_view(letters, 3)[:2000].copy(), letters[3:2003].copy()


def walks(seed: int) -> Pair:
    """Inputs and targets that wander, each for itself: at some shift they resemble each other."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(1000, 6)).cumsum(0).astype(np.float32), rng.normal(size=(1000, 1)).cumsum(0).astype(np.float32)


def fading(seed: int) -> Pair:
    """Half of each row is left in the next one."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(1500, 7))
    for row in range(1, len(series)):
        series[row] += 0.5 * series[row - 1]
    return series[:, :6].astype(np.float32), series[:, 6:].astype(np.float32)


def hourly(seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(1500)[:, None] / 24
    x = np.sin(angle + rng.uniform(0, 6, 4)) + 0.5 * rng.normal(size=(1500, 4))
    return x.astype(np.float32), (np.sin(angle + rng.uniform(0, 6)) + 0.3 * rng.normal(size=(1500, 1))).astype(np.float32)


def weekly(seed: int) -> Pair:
    """One column and the target depend on the day of the week; the line between them fits best on other days."""
    rng = np.random.default_rng(seed)
    day = np.arange(1400) % 7
    x = rng.normal(size=(1400, 5))
    x[:, 0] = rng.normal(size=7)[day] + 0.1 * rng.normal(size=1400)
    return x.astype(np.float32), (rng.normal(size=7)[day] + 0.3 * rng.normal(size=1400)).astype(np.float32)[:, None]


def a_day_ahead(seed: int) -> Pair:
    returns = np.random.default_rng(seed).standard_t(4, size=(1524, 6)).astype(np.float32)
    return returns[:-24], returns[24:, :1].copy()


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

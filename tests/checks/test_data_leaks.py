"""target-leak and same-batch-every-step: what gives itself away is named, easy and small honest sets are not accused."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import datasets
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from sleuth import Subject
from sleuth.adapters.numpy import ADAPTER as NUMPY
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.same_batch_every_step import same_batch_every_step
from sleuth.checks.data.target_leak import target_leak
from sleuth.core.check import Check
from sleuth.core.contract.adapter import Adapter
from sleuth.core.engine import Engine, Judgement
from sleuth.core.stage import Confidence, Severity
from sleuth.core.trial import Feeding
from sleuth.probes.data.giveaway import giveaway
from sleuth.probes.data.reading import reading
from sleuth.probes.data.same_batch import feeding
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab, Probe
from sleuth.probes.learners.single_column import class_error, number_error
from tests.material import cancer, diabetes, digits, wine


def judge(probe: Probe, check: Check, train: Any, adapter: Adapter = ADAPTER, **parts: Any) -> Judgement:
    lab, engine = Lab(Subject(nn.Linear(1, 1), train, **parts), adapter, 60.0), Engine([check])
    run_probe(reading, lab, engine.emit)
    run_probe(probe, lab, engine.emit)
    return engine.judge()


def loader(*arrays: Any, **options: Any) -> DataLoader:
    return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), **{"batch_size": 32, "shuffle": True, **options})


def leak(x: Any, y: np.ndarray, **parts: Any) -> Judgement:
    return judge(giveaway, target_leak, loader(x.astype(np.float32), y), **parts)


def feed(train: Any, **parts: Any) -> Judgement:
    return judge(feeding, same_batch_every_step, train, **parts)


def iris() -> tuple[np.ndarray, np.ndarray]:
    x, y = datasets.load_iris(return_X_y=True)
    return (x - x.mean(0)) / x.std(0), y


def beside(x: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    return np.column_stack([x, *(c.reshape(len(x), -1) for c in columns)])


SETS = [iris, wine, cancer, digits, diabetes]
CLASSES = [iris, wine, cancer, digits]


@pytest.mark.parametrize("material", SETS)
def test_honest_sets_are_clear(material) -> None:
    assert leak(*material()).clear == ("target-leak",)


@pytest.mark.parametrize("material", SETS)
def test_a_copy_of_the_target_is_found_on_any_scale(material) -> None:
    x, y = material()
    found = leak(beside(x, 3 - 0.5 * y), y).findings[0]
    assert (found.where, found.confidence, found.severity) == (f"column {x.shape[1]}", Confidence.LIKELY, Severity.WARNING)
    assert found.numbers["complete"]
    assert f"x = np.delete(x, {x.shape[1]}, axis=1)" in found.fix


@pytest.mark.parametrize("material", CLASSES)
def test_a_code_of_the_class_is_found_whatever_its_order(material) -> None:
    x, y = material()
    codes = np.random.default_rng(0).permutation(10)
    assert leak(beside(x, codes[y]), y).findings


@pytest.mark.parametrize("material", [wine, cancer, digits])
def test_a_class_with_noise_on_top_is_found(material) -> None:
    x, y = material()
    assert leak(beside(x, y + np.random.default_rng(0).normal(0, 0.08, len(y))), y).findings


def test_a_curved_and_a_noisy_image_of_a_number_are_found() -> None:
    x, y = diabetes()
    noise = np.random.default_rng(0).normal(0, 0.05, y.shape)
    assert leak(beside(x, np.exp(y)), y).findings
    assert leak(beside(x, y + noise), y).findings[0].confidence is Confidence.POSSIBLE


def test_row_numbers_of_a_file_that_is_sorted_by_class_are_found() -> None:
    x, y = cancer()
    order = np.argsort(y, kind="stable")
    assert leak(beside(x[order], np.arange(len(x)) / 100), y[order]).findings


def test_a_yes_no_flag_that_equals_the_outcome_is_found_beside_honest_flags() -> None:
    x, y = cancer()
    flags = (x > 0).astype(np.float32)
    assert leak(flags, y).clear
    assert leak(beside(flags, y), y).findings[0].where == "column 30"
    assert leak(beside(flags, y), y[:, None].astype(np.float32)).findings, "a target of 0.0 and 1.0 is a class too"
    assert leak(beside(flags, y), np.eye(2, dtype=np.float32)[y]).findings, "and so is a one-hot target"


def test_two_columns_that_were_both_made_from_the_target_are_named_together() -> None:
    x, y = cancer()
    found = leak(beside(x, y, 5.0 * y + 1), y).findings[0]
    assert {found.where, "column 30", "column 31"} == {"column 30", "column 31"}
    assert "column 31" in found.summary


def test_a_category_that_gives_the_class_away_is_found_beside_a_table_of_numbers() -> None:
    x, y = cancer()
    ids = np.column_stack([np.random.default_rng(0).integers(0, 5, len(y)), 3 * y + 1])
    found = judge(giveaway, target_leak, loader(ids, x, y)).findings[0]
    assert found.where == "0 column 1"


def test_a_large_set_is_sampled_and_that_is_said() -> None:
    x, y = (np.concatenate([a] * 6) for a in cancer())
    found = leak(beside(x + np.random.default_rng(0).normal(0, 0.01, x.shape), y), y).findings[0]
    assert not found.numbers["complete"]
    assert found.numbers["samples"] < found.numbers["total"] == len(y)
    assert f"on {found.numbers['samples']} of {len(y)} held-out samples" in found.summary


@pytest.fixture(autouse=True)
def short_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless sources are left after fewer batches than usual."""
    monkeypatch.setattr("sleuth.probes.data.reading.MOST_UNSIZED_BATCHES", 64)


RNG = np.random.default_rng(1)
FREE = RNG.normal(size=(1000, 12))
MIXED = FREE @ RNG.normal(size=(12, 12))
WALK = np.cumsum(RNG.normal(size=1021))
PRICES = np.column_stack([WALK[:1000], np.abs(WALK[:1000]) + RNG.normal(0, 8, 1000), FREE[:, :6]])
SINE = np.sin(np.arange(1020) / 10)
ANY = RNG.permutation(1000)
HONEST = {
    "a sign of one of many free columns": (FREE, (FREE[:, 0] > 0).astype(np.int64)),
    "a sign of one of many mixed columns": (MIXED, (MIXED[:, 0] > 0).astype(np.int64)),
    "grades of a scale": (MIXED, np.digitize(MIXED[:, 0], [-3, 0, 3])),
    "a line through one of many free columns": (FREE, (2 * FREE[:, 0] + 1).astype(np.float32)),
    "a sum": (FREE, FREE.sum(1).astype(np.float32)),
    "one input alone": (FREE[:, :1], np.sin(FREE[:, 0]).astype(np.float32)),
    "powers of one input": (np.stack([FREE[:, 0] ** k for k in range(1, 7)], 1), FREE[:, 0].astype(np.float32)),
    "a one-hot code": (np.eye(8)[ANY % 8], ANY % 8),
    "parity": ((FREE > 0).astype(np.float32), (FREE > 0).sum(1) % 2),
    "the input itself": (FREE, FREE.astype(np.float32)),
    "the next value of a wave": (np.stack([SINE[i : i + 20] for i in range(1000)]), SINE[20:].astype(np.float32)),
    "tomorrow's price": (PRICES, WALK[1:1001].astype(np.float32)),
    "tomorrow's price in random order": (PRICES[ANY], WALK[1:1001][ANY].astype(np.float32)),
    "tomorrow's price on another scale": (PRICES, (WALK[1:1001] / 7 + 3).astype(np.float32)),
    "labels without inputs": (FREE, RNG.integers(0, 2, 1000)),
    "noise that stands apart": (FREE + 20 * (FREE[:, :1] > 0), (FREE[:, 0] > 0).astype(np.int64)),
    "few samples": (beside(FREE[:40], FREE[:40, :1] > 0), (FREE[:40, 0] > 0).astype(np.int64)),
}


@pytest.mark.parametrize(("x", "y"), HONEST.values(), ids=HONEST)
def test_what_is_the_task_itself_is_not_accused(x: np.ndarray, y: np.ndarray) -> None:
    assert not leak(x, y).findings


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("columns", [4, 10])
def test_clouds_that_lie_apart_by_design_are_not_accused(seed: int, columns: int) -> None:
    for sep in (1.0, 2.0):
        toy = datasets.make_classification(400, columns, n_informative=3, n_redundant=0, class_sep=sep, random_state=seed)
        assert not leak(*toy).findings
    for centers in (2, 3):
        assert not leak(*datasets.make_blobs(400, columns, centers=centers, random_state=seed)).findings


def test_one_class_of_iris_that_two_columns_tell_from_the_others_is_not_accused() -> None:
    x, y = iris()
    assert leak(x, (y == 0).astype(np.int64)).clear


def test_a_good_measurement_of_the_target_is_not_accused() -> None:
    x, y = diabetes()
    assert leak(beside(x, y + np.random.default_rng(0).normal(0, 0.1, y.shape)), y).clear


def test_a_perfect_column_that_another_nearly_equals_is_not_accused() -> None:
    rng = np.random.default_rng(0)
    x, y = cancer()
    honest = y + rng.normal(0, 0.03, y.shape)
    assert leak(beside(x, honest), y).findings
    assert leak(beside(x, honest, y + rng.normal(0, 0.23, y.shape)), y).clear


def test_two_digits_that_a_pixel_tells_apart_are_not_accused() -> None:
    x, y = digits()
    for pair in ((0, 1), (0, 4), (1, 6)):
        rows = np.isin(y, pair)
        assert leak(x[rows], (y[rows] == pair[0]).astype(np.int64)).clear


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.zeros((100, 1, 4, 4), np.float32), np.arange(100) % 2, "image"),
        (np.arange(1000).reshape(100, 10), np.arange(100) % 2, "ids"),
        (FREE[:100].astype(np.float32), FREE[:100, :3].astype(np.float32), "3 values a sample"),
        (FREE[:50].astype(np.float32), np.arange(50) % 2, "50 samples"),
    ],
    ids=["pictures", "words", "several targets", "few samples"],
)
def test_what_is_no_table_with_one_target_is_not_examined(x: np.ndarray, y: np.ndarray, reason: str) -> None:
    assert reason in judge(giveaway, target_leak, loader(x, y)).not_examined["target-leak"]


def test_a_column_that_knows_nothing_errs_like_guessing_and_one_that_knows_all_never() -> None:
    rng = np.random.default_rng(0)
    labels, target = rng.integers(0, 4, 800), rng.normal(size=800)
    assert class_error(rng.normal(size=800), labels, 4) == pytest.approx(1, abs=0.1)
    assert class_error(rng.integers(0, 9, 800).astype(float), labels, 4) == pytest.approx(1, abs=0.1)
    assert class_error(labels * 2.0, labels, 4) == 0
    assert number_error(rng.normal(size=800), target) > 0.97
    assert number_error(np.exp(target), target) == pytest.approx(0, abs=1e-9)
    assert number_error(np.arcsin(np.sin(9 * target)), target) > 0.5


X, Y = (torch.as_tensor(a[:320]) for a in digits())


class Source:
    """An iterable like any other, without a data set that could be asked."""

    def __init__(self, batches: list[Any], endless: bool = False) -> None:
        self.batches, self.endless = batches, endless

    def __iter__(self) -> Iterator[Any]:
        yield from self.batches
        while self.endless:
            yield from self.batches


class Deaf(Dataset):
    def __len__(self) -> int:
        return 320

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return X[0], Y[0]


def test_an_iterator_that_starts_over_at_each_step_is_an_error() -> None:
    class Restarting:
        def __iter__(self) -> Iterator[Any]:
            for _ in range(10):
                yield next(iter(loader(X, Y, shuffle=False)))

    found = feed(Restarting()).findings[0]
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert found.numbers["samples"] == 32


@pytest.mark.parametrize("given", [Deaf(), DataLoader(Deaf(), batch_size=32, shuffle=True)], ids=["data set", "loader"])
def test_a_data_set_that_ignores_its_index_is_certain(given: Any) -> None:
    found = feed(given).findings[0]
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.CERTAIN)
    assert "32 times the same sample, while the data set counts 320" in found.summary
    assert "self.x[i]" in found.fix


def test_a_batch_sampler_that_always_picks_the_same_is_certain() -> None:
    given = DataLoader(TensorDataset(X, Y), batch_sampler=[list(range(16))] * 20)
    assert feed(given).findings[0].confidence is Confidence.CERTAIN


def test_an_endless_source_of_one_batch_is_found() -> None:
    assert feed(Source([(X[:8], Y[:8])], endless=True)).findings[0].severity is Severity.ERROR


def test_plain_numpy_batches_are_compared_too() -> None:
    batch = (X[:32].numpy(), Y[:32].numpy())
    assert judge(feeding, same_batch_every_step, Source([batch] * 5), NUMPY).findings


def test_a_list_of_one_batch_many_times_is_a_hint_unless_validation_is_larger() -> None:
    whole = [(X, Y)] * 50
    assert feed(whole).findings[0].severity is Severity.HINT
    few = [(X[:32], Y[:32])] * 50
    assert feed(few, validation=(X, Y)).findings[0].severity is Severity.ERROR


FINE = {
    "shuffled": loader(X, Y),
    "in order": loader(X, Y, shuffle=False),
    "one batch is all": loader(X, Y, batch_size=320),
    "a list of one batch": [(X, Y)],
    "few batches without end": Source([(X[:32], Y[:32]), (X[32:64], Y[32:64])], endless=True),
    "equal inputs with other targets": Source([(X[:8], Y[i : i + 8]) for i in range(0, 80, 8)]),
    "two equal batches": Source([(X[:32], Y[:32])] * 2),
    "blank pictures of different grey": Source([(torch.full((4, 64), float(i)), Y[:4]) for i in range(9)]),
    "graphs whose nodes are alike": Source([((torch.ones(6, 1), torch.randint(0, 6, (2, 9))), torch.zeros(6)) for _ in range(9)]),
}


@pytest.mark.parametrize("given", FINE.values(), ids=FINE)
def test_different_batches_and_sets_of_one_batch_are_clear(given: Any) -> None:
    assert feed(given).clear == ("same-batch-every-step",)


@pytest.mark.parametrize(("count", "complete", "examined"), [(2, False, False), (2, True, True), (1, False, False)])
def test_two_equal_batches_are_only_clear_where_no_other_could_follow(count: int, complete: bool, examined: bool) -> None:
    engine = Engine([same_batch_every_step])
    engine.emit(Feeding(count, 1, 32, 32, complete=complete, available=320))
    judgement = engine.judge()
    assert ("same-batch-every-step" in judgement.clear) == examined
    assert ("same-batch-every-step" in judgement.not_examined) != examined


def test_a_source_that_fills_one_buffer_again_and_again_is_clear() -> None:
    class Buffered:
        def __iter__(self) -> Iterator[Any]:
            x, y = torch.empty(32, 64), torch.empty(32, dtype=torch.int64)
            for rows in torch.arange(320).split(32):
                yield x.copy_(X[rows]), y.copy_(Y[rows])

    assert feed(Buffered()).clear


def test_arrays_and_batches_that_stand_for_nothing_are_not_examined() -> None:
    assert "sleuth itself draws" in feed((torch.ones(100, 4), torch.zeros(100))).not_examined["same-batch-every-step"]
    own = feed([torch.zeros(1)] * 9, step=lambda model, batch: model(X[:, :1]).mean())
    assert "make its own data" in own.not_examined["same-batch-every-step"]

"""Balance and order of labels: chance is known, and what the user already handles is not accused."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset, TensorDataset, WeightedRandomSampler

from sleuth import Report
from sleuth.probes.data.sample_order import count_runs
from tests.checks import data_stage
from tests.checks.data_stage import loader, mlp
from tests.material import cancer, diabetes, digits

judge = partial(data_stage.judge, checks=["class-imbalance", "data-not-shuffled"])


def found(report: Report) -> list[tuple[str, str]]:
    return [(f.name, f.severity.value) for f in report.findings]


def lopsided() -> tuple[np.ndarray, np.ndarray]:
    x, y = cancer()
    rows = np.sort(np.concatenate([np.flatnonzero(y == 0)[::21], np.flatnonzero(y == 1)]))
    return x[rows], y[rows]


def test_weights_in_the_loss_show_that_the_user_knows() -> None:
    x, y = lopsided()
    assert found(judge(mlp(30, 16, 2), loader(x, y))) == [("class-imbalance", "warning")]
    assert found(judge(mlp(30, 16, 2), loader(x, y), nn.CrossEntropyLoss(weight=torch.tensor([16.0, 0.5])))) == []
    column = y.astype(np.float32)[:, None]
    assert found(judge(mlp(30, 16, 1), loader(x, column), nn.BCEWithLogitsLoss())) == [("class-imbalance", "warning")]
    weighted = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([0.03]))
    assert found(judge(mlp(30, 16, 1), loader(x, column), weighted)) == []


def test_a_sampler_that_balances_is_silent() -> None:
    x, y = lopsided()
    sampler = WeightedRandomSampler((1 / np.bincount(y))[y].tolist(), len(y))
    assert found(judge(mlp(30, 16, 2), loader(x, y, shuffle=False, sampler=sampler))) == []


def test_few_samples_of_even_classes_are_not_called_unbalanced() -> None:
    x, y = digits()
    assert found(judge(mlp(64, 10), loader(x[:60], y[:60]))) == []


def test_a_focal_loss_of_the_user_s_own_is_not_judged() -> None:
    def focal(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        p = output.softmax(1).gather(1, target[:, None])
        return -((1 - p) ** 2 * p.log()).mean()

    report = judge(mlp(30, 16, 2), loader(*lopsided()), focal)
    assert found(report) == []
    assert "class-imbalance" in report.not_examined


class NextCharacter(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(characters, 8), nn.Linear(64, characters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(x).flatten(1))


def test_rare_characters_of_a_text_are_natural() -> None:
    text = [ord(c) for c in Path(__file__).read_text()]
    codes = np.unique(text, return_inverse=True)[1]
    x = np.stack([codes[i : i + 8] for i in range(len(codes) - 8)])
    assert found(judge(NextCharacter(codes.max() + 1), loader(x, codes[8:]))) == []


def test_a_class_that_never_occurs_is_named() -> None:
    x, y = digits()
    report = judge(mlp(64, 10), loader(x[y != 4], y[y != 4]))
    assert found(report) == [("class-imbalance", "warning")]
    assert report.findings[0].where == "class 4"


def test_an_idle_first_output_is_a_hint() -> None:
    x, y = digits()
    assert found(judge(mlp(64, 11), loader(x, y + 1))) == [("class-imbalance", "hint")]


def test_spare_outputs_at_the_end_are_silent() -> None:
    x, y = digits()
    assert found(judge(mlp(64, 16), loader(x, y))) == []


def test_labels_that_are_all_the_same_are_named() -> None:
    x, y = digits()
    assert found(judge(mlp(64, 10), loader(x, np.zeros_like(y)))) == [("class-imbalance", "warning")]


def test_regression_and_unused_labels_are_silent() -> None:
    x, y = lopsided()
    assert found(judge(mlp(10, 16, 1), loader(*diabetes()), nn.MSELoss())) == []
    rebuild = judge(mlp(30, 4, 30), loader(x, y), step=lambda m, b: F.mse_loss(m(b[0]), b[0]))
    assert found(rebuild) == []


def by_class() -> tuple[np.ndarray, np.ndarray]:
    x, y = digits()
    order = np.argsort(y, kind="stable")
    return x[order], y[order]


class Shifts(Dataset):
    """Shifts pixels at random: no sample comes twice."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = torch.as_tensor(x), torch.as_tensor(y)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index] + 0.05 * torch.randn(64), self.y[index]


def test_sorted_labels_are_a_warning_and_a_fixed_order_of_mixed_ones_a_hint() -> None:
    sorted_report = judge(mlp(64, 10), loader(*by_class(), shuffle=False))
    assert found(sorted_report) == [("data-not-shuffled", "warning")]
    x, y = digits()
    order = np.random.default_rng(0).permutation(len(y))
    assert found(judge(mlp(64, 10), loader(x[order], y[order], shuffle=False))) == [("data-not-shuffled", "hint")]
    assert found(judge(mlp(64, 10), loader(*by_class()))) == []


def test_a_fixed_order_is_seen_through_augmentation() -> None:
    x, y = digits()
    order = np.random.default_rng(0).permutation(len(y))
    fixed = DataLoader(Shifts(x[order], y[order]), batch_size=32)
    assert found(judge(mlp(64, 10), fixed)) == [("data-not-shuffled", "hint")]
    assert found(judge(mlp(64, 10), DataLoader(Shifts(x, y), batch_size=32, shuffle=True))) == []


def test_what_sleuth_batches_itself_is_not_examined() -> None:
    for source in (tuple(map(torch.as_tensor, by_class())), TensorDataset(*map(torch.as_tensor, by_class()))):
        report = judge(mlp(64, 10), source)
        assert found(report) == []
        assert "data-not-shuffled" in report.not_examined


def test_a_list_of_mixed_batches_is_not_accused_and_one_of_single_classes_is() -> None:
    assert found(judge(mlp(64, 10), list(loader(*digits())))) == []
    assert found(judge(mlp(64, 10), list(loader(*by_class(), shuffle=False)))) == [("data-not-shuffled", "warning")]


class Stream:
    def __init__(self, x: np.ndarray) -> None:
        self.x = torch.as_tensor(x)

    def __iter__(self) -> Iterator[torch.Tensor]:
        order = torch.randperm(len(self.x))
        return iter(self.x[order].split(32))


def test_a_stream_without_labels_in_changing_order_is_silent() -> None:
    x, _ = cancer()
    assert found(judge(mlp(30, 4, 30), Stream(x), step=lambda m, b: F.mse_loss(m(b), b))) == []


def test_a_target_sorted_by_size_is_named() -> None:
    x, y = diabetes()
    order = np.argsort(y[:, 0])
    sorted_report = judge(mlp(10, 16, 1), loader(x[order], y[order], shuffle=False), nn.MSELoss())
    assert found(sorted_report) == [("data-not-shuffled", "warning")]


def test_a_shuffled_target_of_few_values_is_silent() -> None:
    x, y = cancer()
    for target in (2.0 * y - 1, 0.0 * y + 5):
        assert found(judge(mlp(30, 16, 1), loader(x, target.astype(np.float32)[:, None]), nn.MSELoss())) == []


def test_a_whole_set_in_one_batch_has_no_order() -> None:
    report = judge(mlp(64, 10), loader(*by_class(), batch_size=2000, shuffle=False))
    assert found(report) == []
    assert "data-not-shuffled" in report.not_examined


@pytest.mark.parametrize("counts", [(40, 60), (5, 95), (10, 20, 30, 40), (1, 1, 98)])
def test_expected_runs_are_those_of_random_orders(counts: tuple[int, ...]) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(0)
    _, expected, std = count_runs(labels)
    runs = [count_runs(rng.permutation(labels))[0] for _ in range(4000)]
    assert np.mean(runs) == pytest.approx(expected, abs=5 * std / np.sqrt(4000))
    assert np.std(runs) == pytest.approx(std, rel=0.08)


def test_the_loader_s_own_generator_is_where_it_was() -> None:
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    judge(mlp(64, 10), loader(*digits(), generator=generator))
    assert torch.equal(generator.get_state(), before)

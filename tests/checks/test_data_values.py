"""NaN, dtypes and targets: what a model copes with is not accused, what it cannot cope with is named first."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.checks import data_stage
from tests.checks.data_stage import loader, mlp, names
from tests.material import cancer, diabetes, digit_images, digits

judge = partial(data_stage.judge, checks=["input-not-finite", "target-not-finite", "input-dtype", "target-out-of-range"])


def with_nan(x: np.ndarray, share: float = 0.1) -> np.ndarray:
    x = x.copy()
    x[np.random.default_rng(0).random(x.shape) < share] = np.nan
    return x


class FillsIn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(30, 16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(torch.nan_to_num(x))


def test_a_model_that_fills_in_missing_values_is_not_accused() -> None:
    x, y = cancer()
    assert names(judge(FillsIn(), loader(with_nan(x), y))) == []
    assert names(judge(mlp(30, 16, 2), loader(with_nan(x), y))) == ["input-not-finite"]


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.switch = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.head(self.switch(x, x, x, attn_mask=mask)[0].mean(1))


def test_an_additive_mask_of_minus_infinity_is_not_accused() -> None:
    x, y = digit_images()
    mask = torch.triu(torch.full((8, 8), float("-inf")), diagonal=1)
    batches = [(torch.as_tensor(x[i : i + 32, 0]), mask, torch.as_tensor(y[i : i + 32])) for i in range(0, 320, 32)]
    assert names(judge(Attends(), batches)) == []


def test_a_loss_that_leaves_missing_targets_out_is_not_accused() -> None:
    x, y = diabetes()

    def masked(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        known = ~torch.isnan(target)
        return F.mse_loss(output[known], target[known])

    assert names(judge(mlp(10, 16, 1), loader(x, with_nan(y)), masked)) == []
    assert names(judge(mlp(10, 16, 1), loader(x, with_nan(y)), nn.MSELoss())) == ["target-not-finite"]


def test_nan_in_one_late_sample_is_found_and_placed() -> None:
    x, y = digits()
    x = x.copy()
    x[1700, 5] = np.inf
    report = judge(mlp(64, 10), loader(x, y, shuffle=False))
    finding = report.findings[0]
    assert finding.name == "input-not-finite"
    assert finding.numbers["first_batch"] == 1700 // 32
    assert "column 5" in str(finding.where)


class Casts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.float().flatten(1) / 16)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint8, np.float32])
def test_a_model_that_converts_its_inputs_is_not_accused(dtype: type) -> None:
    x, y = digits()
    assert names(judge(Casts(), loader((x * 16).astype(dtype), y))) == []


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32, np.uint8, np.float16])
@pytest.mark.parametrize(
    "model", [mlp(64, 10), nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 10))]
)
def test_a_model_that_does_not_convert_is_told_which_dtype_it_got(model: nn.Module, dtype: type) -> None:
    x, y = digits()
    report = judge(model, loader((x * 16).astype(dtype), y))
    assert names(report) == ["input-dtype"]
    assert np.dtype(dtype).name in report.findings[0].summary
    assert "float32" in report.findings[0].summary


def test_a_double_model_wants_double_and_a_half_model_half() -> None:
    x, y = digits()
    assert names(judge(mlp(64, 10).double(), loader(x.astype(np.float64), y))) == []
    assert names(judge(mlp(64, 10).bfloat16(), loader(torch.as_tensor(x).bfloat16(), y))) == []
    assert names(judge(mlp(64, 10).double(), loader(x, y))) == ["input-dtype"]


def test_ids_for_an_embedding_must_be_whole_and_may_be() -> None:
    x, y = digits()
    model = nn.Sequential(nn.Embedding(17, 4), nn.Flatten(), nn.Linear(256, 10))
    assert names(judge(model, loader((x * 16).astype(np.int64), y))) == []
    report = judge(model, loader(x * 16, y))
    assert names(report) == ["input-dtype"]
    assert "int64" in report.findings[0].fix or "long" in report.findings[0].fix


class Masked(nn.Module):
    def __init__(self, broken: bool = False) -> None:
        super().__init__()
        self.body = mlp(64, 10)
        self.broken = broken

    def forward(self, x: torch.Tensor, length: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.broken:
            return self.body(torch.arange(64).expand(len(x), 64))
        return self.body(x * mask) / length[:, None]


@pytest.mark.parametrize("broken", [False, True])
def test_lengths_and_masks_beside_a_float_input_are_not_accused(broken: bool) -> None:
    x, y = digits()
    train = loader(x, np.full(len(x), 64), np.ones(x.shape, bool), y)
    assert "input-dtype" not in names(judge(Masked(broken), train))


def test_an_error_over_shapes_is_not_taken_for_one_over_dtypes() -> None:
    x, y = digits()
    assert "input-dtype" not in names(judge(mlp(63, 10), loader(x, y)))


@pytest.mark.parametrize("ignored", [-100, -1, 255])
def test_ignored_targets_are_not_out_of_range(ignored: int) -> None:
    x, y = digits()
    y = y.copy()
    y[::7] = ignored
    assert names(judge(mlp(64, 10), loader(x, y), nn.CrossEntropyLoss(ignore_index=ignored))) == []


@pytest.mark.parametrize("ignored", [-1, 255])
def test_ignored_pixels_are_not_out_of_range(ignored: int) -> None:
    x, _ = digit_images()
    y = (x[:, 0] > 0.5).astype(np.int64)
    y[:, 0] = ignored
    assert names(judge(nn.Conv2d(1, 2, 3, padding=1), loader(x, y), nn.CrossEntropyLoss(ignore_index=ignored))) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda y: y + 1, "Subtract 1"),
        (lambda y: np.where(y == 9, 12, y), "13 outputs"),
        (lambda y: np.where(y == 9, -1, y), "ignore_index=-1"),
    ],
)
def test_the_fix_of_a_target_out_of_range_says_what_to_do(change: Any, says: str) -> None:
    x, y = digits()
    report = judge(mlp(64, 10), loader(x, change(y)))
    assert names(report) == ["target-out-of-range"]
    assert says in report.findings[0].fix


def test_one_bad_label_late_in_the_set_is_found_without_a_crash() -> None:
    x, y = digits()
    y = y.copy()
    y[-1] = 10
    train = loader(x, y, shuffle=False)
    assert names(judge(mlp(64, 10), train)) == ["target-out-of-range"]


def test_a_loop_that_counts_from_zero_itself_is_not_accused() -> None:
    x, y = digits()
    assert names(judge(mlp(64, 10), loader(x, y + 1), step=lambda m, b: F.cross_entropy(m(b[0]), b[1] - 1))) == []


def test_a_custom_loss_that_refuses_a_label_is_understood() -> None:
    x, y = digits()
    report = judge(mlp(64, 10), loader(x, y + 1), step=lambda m, b: F.cross_entropy(m(b[0]), b[1]))
    assert names(report) == ["target-out-of-range"]


def test_signs_are_no_probabilities() -> None:
    x, y = cancer()
    signs = (2 * y - 1).astype(np.float32)[:, None]
    report = judge(mlp(30, 16, 1), loader(x, signs), nn.BCEWithLogitsLoss())
    assert names(report) == ["target-out-of-range"]
    assert "(y + 1) / 2" in report.findings[0].fix
    soft = np.clip(y, 0.05, 0.95).astype(np.float32)[:, None]
    assert names(judge(mlp(30, 16, 1), loader(x, soft), nn.BCEWithLogitsLoss())) == []


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 10)

    def forward(self, sequence: nn.utils.rnn.PackedSequence) -> torch.Tensor:
        return self.head(self.body(sequence)[1][0])


def test_a_packed_sequence_reaches_the_model_in_one_piece() -> None:
    x, y = map(torch.as_tensor, digit_images())
    pack = partial(nn.utils.rnn.pack_padded_sequence, lengths=torch.full((32,), 8), batch_first=True)
    batches = [(pack(x[i : i + 32, 0]), y[i : i + 32]) for i in range(0, 320, 32)]
    report = judge(Packed(), batches)
    assert names(report) == []
    assert "input-dtype" in report.clear

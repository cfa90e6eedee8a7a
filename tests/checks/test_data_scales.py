"""Scales of inputs and targets, and columns that never vary: harm is named, habit is not."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits, load_wine
from torch import nn
from torch.nn import functional as F  # noqa: N812

from sleuth import Report
from tests.checks import data_stage
from tests.checks.data_stage import loader, mlp, names, raw_images
from tests.material import cancer, diabetes, digit_images, digits, wine

RAW_WINE = load_wine().data.astype(np.float32)
RAW_TARGET = load_diabetes().target.astype(np.float32)[:, None]


def judge(model: nn.Module, x: Any, y: Any, loss: Any = None, **parts: Any) -> Report:
    checks = ["input-not-normalised", "constant-feature", "target-not-scaled"]
    return data_stage.judge(model, loader(x, y), loss, checks=checks, **parts)


def photographs() -> tuple[np.ndarray, np.ndarray]:
    x, y = digit_images()
    return raw_images(x), y


class Scales(nn.Module):
    """Brings pixels to -1..1 by itself."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x / 127.5 - 1)


def cnn(*norm: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), *norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


@pytest.mark.parametrize(
    "data", [digits, lambda: (2 * digits()[0] - 1, digits()[1]), lambda: (digits()[0] * 16, digits()[1]), wine, cancer]
)
def test_usual_scales_are_silent(data: Any) -> None:
    x, y = data()
    assert names(judge(mlp(x.shape[1], 16, 10), x, y)) == []


def test_pixels_standardised_one_by_one_are_silent() -> None:
    x, y = digits()
    x = (x - x.mean(0)) / (x.std(0) + 1e-8)
    assert names(judge(mlp(64, 16, 10), x, y)) == []


def test_pixels_standardised_as_a_whole_are_silent() -> None:
    x, y = digits()
    assert names(judge(mlp(64, 16, 10), (x - x.mean()) / x.std(), y)) == []


def test_rows_of_pixels_are_no_table() -> None:
    x, y = digit_images()
    x = np.pad(x[:, 0], ((0, 0), (2, 2), (2, 2)))
    assert names(judge(nn.Sequential(nn.Flatten(), nn.Linear(144, 10)), x, y)) == []


def test_raw_pixels_are_named_with_the_divisor() -> None:
    report = judge(cnn(), *photographs())
    assert names(report) == ["input-not-normalised"]
    assert "255" in report.findings[0].fix
    assert report.findings[0].severity.value == "warning"


def test_a_model_that_scales_pixels_itself_is_silent() -> None:
    assert names(judge(Scales(cnn()), *photographs())) == []


def test_a_step_that_scales_pixels_is_silent() -> None:
    model = cnn()
    assert names(judge(model, *photographs(), step=lambda m, b: F.cross_entropy(m(b[0] / 255), b[1]))) == []


def test_a_model_that_begins_with_a_normalisation_is_silent() -> None:
    assert names(judge(nn.Sequential(nn.BatchNorm2d(3), cnn()), *photographs())) == []
    assert names(judge(nn.Sequential(nn.BatchNorm1d(13), mlp(13, 16, 3)), RAW_WINE, wine()[1])) == []


def test_a_normalisation_right_after_the_first_layer_makes_it_a_hint() -> None:
    report = judge(cnn(nn.BatchNorm2d(8)), *photographs())
    assert [(f.name, f.severity.value) for f in report.findings] == [("input-not-normalised", "hint")]


def test_columns_on_scales_far_apart_are_named() -> None:
    x = cancer()[0].copy()
    x[:, 4] *= 5e-4
    x[:, 9] *= 2
    report = judge(mlp(30, 16, 2), x, cancer()[1])
    assert names(report) == ["input-not-normalised"]
    assert "column 9" in report.findings[0].summary
    assert "column 4" in report.findings[0].summary


class Recurrent(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.body, self.head, self.scale = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10), scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x * self.scale)[0][:, -1])


@pytest.mark.parametrize(("scale", "found"), [(1.0, ["input-not-normalised"]), (1 / 255, [])])
def test_a_recurrent_layer_tells_whether_raw_values_reach_it(scale: float, found: list[str]) -> None:
    x = (load_digits().images / 16 * 255).astype(np.float32)
    assert names(judge(Recurrent(scale), x, digits()[1])) == found


def test_ids_beside_an_embedding_are_no_measurements() -> None:
    x = (digits()[0] * 1000).astype(np.int64)
    model = nn.Sequential(nn.Embedding(1001, 4), nn.Flatten(), nn.Linear(256, 10))
    assert names(judge(model, x, digits()[1])) == []


class Table(nn.Module):
    """Looks up in a parameter of its own, without an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(50 * torch.randn(80, 3))

    def forward(self, which: torch.Tensor) -> torch.Tensor:
        return self.rows[which]


def test_the_numbers_of_rows_that_are_looked_up_are_no_measurements() -> None:
    which = np.random.default_rng(0).integers(0, 80, 256)
    assert not names(judge(Table(), which, np.zeros((256, 3), np.float32), F.mse_loss))


def test_a_code_with_values_that_do_not_occur_is_silent() -> None:
    x, y = cancer()
    code = np.eye(12, dtype=np.float32)[np.digitize(x[:, 0], np.linspace(-2, 2, 9))]
    assert (code.max(0) == 0).any()
    assert names(judge(mlp(12, 16, 2), code, y)) == []


def test_a_border_that_is_hardly_ever_written_on_is_silent_after_its_mean_was_taken_off() -> None:
    x, y = digits()
    x = np.concatenate([x, np.zeros((1, 64), np.float32)])
    x[-1, 32] = 1.0  # one sample in all, behind those that are seen
    x -= x.mean(0)
    assert names(judge(mlp(64, 32, 10), x[:-1], y)) == []


def test_an_intercept_is_silent() -> None:
    x, y = cancer()
    x = np.concatenate([np.ones((len(x), 1), np.float32), x], axis=1)
    assert names(judge(mlp(31, 16, 2), x, y)) == []


@pytest.mark.parametrize("value", [0.0, -3.2, 1.0])
def test_a_stuck_column_of_a_table_is_named(value: float) -> None:
    x = wine()[0].copy()
    x[:, 4] = value
    report = judge(mlp(13, 16, 3), x, wine()[1])
    assert names(report) == ["constant-feature"]
    assert report.findings[0].where == "column 4"


def test_a_dead_colour_channel_is_named() -> None:
    x, y = photographs()
    x = x / 255
    x[:, 2] = 0
    report = judge(cnn(), x, y)
    assert names(report) == ["constant-feature"]
    assert report.findings[0].where == "channel 2"


def test_blank_images_are_named_with_their_number() -> None:
    x, y = digit_images()
    x = x.copy()
    x[::8] = 0
    report = judge(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), x, y)
    assert names(report) == ["constant-feature"]
    assert report.findings[0].numbers["blank"] == 225


def test_rows_of_few_yes_no_columns_are_not_blank() -> None:
    x, y = cancer()
    assert names(judge(mlp(3, 16, 2), (x[:, :3] > 0).astype(np.float32), y)) == []


def last_bias(model: nn.Module, value: float) -> nn.Module:
    nn.init.constant_(model[-1].bias, value)
    return model


def test_a_raw_target_is_named_for_every_regression_loss() -> None:
    for loss in (nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), lambda o, t: ((o - t) ** 2).mean()):
        assert names(judge(mlp(10, 16, 1), diabetes()[0], RAW_TARGET, loss)) == ["target-not-scaled"]


def test_a_last_bias_at_the_mean_is_silent() -> None:
    model = last_bias(mlp(10, 16, 1), float(RAW_TARGET.mean()))
    assert names(judge(model, diabetes()[0], RAW_TARGET, nn.MSELoss())) == []


def test_a_target_that_the_loop_scales_is_silent() -> None:
    def step(model: nn.Module, batch: Any) -> torch.Tensor:
        return F.mse_loss(model(batch[0]), (batch[1] - 152) / 77)

    assert names(judge(mlp(10, 16, 1), diabetes()[0], RAW_TARGET, step=step)) == []


def test_a_target_that_the_loss_scales_is_silent() -> None:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ((output - (target - 152) / 77) ** 2).mean()

    assert names(judge(mlp(10, 16, 1), diabetes()[0], RAW_TARGET, loss)) == []


def test_an_autoencoder_of_raw_values_is_told_about_its_input_only() -> None:
    assert names(judge(mlp(13, 4, 13), RAW_WINE, RAW_WINE, nn.MSELoss())) == ["input-not-normalised"]


def test_a_tiny_target_is_named() -> None:
    assert names(judge(mlp(10, 16, 1), diabetes()[0], diabetes()[1] * 1e-6, nn.MSELoss())) == ["target-not-scaled"]

"""All samples with (almost) the same target: told from honest targets that are mostly alike, or that mean nothing."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sleuth import Report, Subject, examine
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

KIT = TorchKit()


def judge(model: nn.Module, x: np.ndarray, y: np.ndarray, loss: Any, lr: float = 3e-3, **options: Any) -> Report:
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    subject = Subject(model, KIT.loader(x, y), loss, optimiser, **options)
    return examine(subject, select=["learns-without-input"], progress=False)


def found(report: Report) -> list[str]:
    return [f.name for f in report.findings]


DAY = np.sin(np.arange(24) / 24 * 2 * np.pi).astype(np.float32)


def test_one_curve_for_all_samples_is_named_with_and_without_validation() -> None:
    x, _ = diabetes()
    y = np.repeat(DAY[None], len(x), axis=0)
    for validation in (None, KIT.loader(x[:64], y[:64])):
        report = judge(KIT.mlp(10, 32, 24), x, y, nn.MSELoss(), validation=validation)
        assert found(report) == ["learns-without-input"]
        assert f"all {len(x)} samples" in report.findings[0].summary


def test_one_curve_with_noise_of_its_own_is_named() -> None:
    x, _ = diabetes()
    y = DAY + np.random.default_rng(0).normal(0, 0.03, (len(x), 24)).astype(np.float32)
    assert found(judge(KIT.mlp(10, 32, 24), x, y, nn.MSELoss())) == ["learns-without-input"]


def test_small_deviations_that_the_inputs_tell_are_worth_learning() -> None:
    x, target = diabetes()
    y = DAY + 0.03 * target * DAY[::-1] + 0.02 * np.random.default_rng(0).normal(size=(len(x), 24))
    report = judge(KIT.mlp(10, 32, 24), x, y.astype(np.float32), nn.MSELoss())
    assert not report.findings, report.to_text()
    assert "learns-without-input" in report.clear


def test_columns_of_different_size_are_no_common_pattern() -> None:
    x, target = diabetes()
    y = np.concatenate([1000 + 5 * target, target], axis=1)
    assert not judge(KIT.mlp(10, 32, 2), x, y, nn.MSELoss()).findings


def test_a_model_that_must_look_to_know_the_places_is_not_accused() -> None:
    """Position prediction: the target is the same for every sample, and only the inputs tell where a row stands."""

    class Places(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = KIT.mlp(8, 64, 8)

        def forward(self, rows: Tensor) -> Tensor:
            return self.net(rows).transpose(1, 2)

    x, _ = digits()
    marked = x.reshape(-1, 8, 8) + np.random.default_rng(0).permutation(np.eye(8, dtype=np.float32))
    places = np.repeat(np.arange(8)[None], len(x), axis=0)
    report = judge(Places(), marked, places, nn.CrossEntropyLoss(), lr=1e-2)
    assert not report.findings, report.to_text()
    assert "learns-without-input" in report.clear


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_target_that_only_fills_its_place_is_not_judged(value: float) -> None:
    """Losses that need no target (residuals, one-class models) are often given zeros or ones."""
    x, _ = digits()
    y = np.full((len(x), 1), value, dtype=np.float32)
    report = judge(KIT.mlp(64, 32, 1), x, y, nn.MSELoss())
    assert not report.findings
    assert "same target" in report.not_examined["learns-without-input"]


def test_masks_that_are_almost_empty_are_not_the_same() -> None:
    x, _ = digits()
    rare = (x > 0.97).astype(np.float32) * (np.random.default_rng(0).random(x.shape) < 0.1)
    assert rare.mean() < 0.02
    assert not judge(KIT.mlp(64, 64, 64), x, rare.astype(np.float32), nn.BCEWithLogitsLoss()).findings


def test_labels_of_one_class_in_the_first_batch_are_chance() -> None:
    x, y = digits()
    order = np.argsort(y != 0, kind="stable")
    model = KIT.mlp(64, 32, 10)
    loader = KIT.loader(x[order], y[order], shuffle=False)
    subject = Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-2))
    assert not examine(subject, select=["learns-without-input"], progress=False).findings

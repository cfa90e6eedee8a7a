"""What a step changes, and what the loss looks at: healthy oddities are told from faults."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Report, Subject, examine
from sleuth.core.stage import Confidence
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

KIT = TorchKit()
NAMES = ["step-changes-nothing", "learns-without-input", "loss-ignores-target", "optimiser-setting-odd"]


def judge(subject: Subject) -> Report:
    return examine(subject, select=NAMES, progress=False)


def training(model: nn.Module, loss: Any = None, **options: Any) -> Subject:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    return Subject(model, KIT.loader(*digits()), loss or nn.CrossEntropyLoss(), optimiser, **options)


def test_a_last_layer_of_zeros_does_not_make_the_loss_ignore_its_targets() -> None:
    model = KIT.mlp(64, 32, 10)
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    report = judge(training(model))
    assert not report.findings
    assert "loss-ignores-target" in report.clear


def test_a_model_with_one_answer_for_all_does_not_make_the_loss_ignore_its_targets() -> None:
    model = KIT.mlp(64, *[32] * 8, 10, activation="sigmoid")
    report = examine(training(model), select=["loss-ignores-target"], progress=False)
    assert "loss-ignores-target" in report.clear


def test_a_step_that_needs_no_labels_is_not_accused_of_ignoring_them() -> None:
    model = KIT.mlp(64, 16, 64)

    def step(model: nn.Module, batch: Any) -> torch.Tensor:
        return nn.functional.mse_loss(model(batch[0]), batch[0])

    report = judge(Subject(model, KIT.loader(*digits()), optimizer=torch.optim.Adam(model.parameters(), lr=1e-2), step=step))
    assert not report.findings
    assert "with the input itself" in report.not_examined["loss-ignores-target"]


def test_a_step_that_looks_at_no_target_is_not_accused_of_ignoring_one() -> None:
    model = KIT.mlp(64, 16, 8)

    def step(model: nn.Module, batch: Any) -> torch.Tensor:
        return (model(batch[0]).std(dim=0) - 1).pow(2).mean()

    report = judge(Subject(model, KIT.loader(*digits()), optimizer=torch.optim.Adam(model.parameters(), lr=1e-2), step=step))
    assert not report.findings
    assert "loss-ignores-target" in report.not_examined


def test_an_own_prediction_in_the_targets_place_is_named() -> None:
    def confident(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output, output.argmax(dim=1))

    report = judge(training(KIT.mlp(64, 32, 10), confident))
    assert report.culprits[0].finding.name == "loss-ignores-target"


def test_a_rate_too_small_for_float32_changes_nothing() -> None:
    model = KIT.mlp(64, 32, 10)
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=1e-12))
    report = examine(subject, select=["step-changes-nothing", "learning-rate-too-low", "learning-rate-too-high"], progress=False)
    assert [c.finding.name for c in report.culprits] == ["learning-rate-too-low"]
    assert "step-changes-nothing" in [s.name for s in report.culprits[0].symptoms]


def test_half_precision_may_round_some_updates_away() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10)).bfloat16()
    x, y = digits()
    loader = [(torch.as_tensor(x[i : i + 32]).bfloat16(), torch.as_tensor(y[i : i + 32])) for i in range(0, 1760, 32)]
    report = judge(Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3)))
    assert not report.findings
    assert "step-changes-nothing" in report.clear


def test_a_frozen_model_is_no_matter_of_the_step() -> None:
    model = KIT.mlp(64, 32, 10).requires_grad_(False)
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss()))
    assert not report.findings
    assert "step-changes-nothing" in report.not_examined


def test_targets_among_the_inputs_are_blanked_with_them() -> None:
    class Forced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(64, 32)
            self.table = nn.Embedding(10, 32)
            self.head = nn.Linear(32, 10)

        def forward(self, x: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.inner(x) + self.table(previous)))

    x, y = (torch.as_tensor(a) for a in digits())
    batches = [(x[i : i + 32], y[i : i + 32], y[i : i + 32]) for i in range(0, 1760, 32)]
    model = Forced()
    report = judge(Subject(model, batches, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-2)))
    assert not report.findings


def test_a_momentum_that_never_forgets_is_odd() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.99999, 0.999))
    report = examine(
        Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), optimiser), select=["optimiser-setting-odd"], progress=False
    )
    assert [f.name for f in report.findings] == ["optimiser-setting-odd"]


def test_settings_in_use_are_not_odd() -> None:
    model = KIT.mlp(64, 32, 10)
    parameters = list(model.parameters())
    for optimiser in (
        torch.optim.SGD(parameters, lr=0.1, momentum=0.99, nesterov=True),
        torch.optim.Adam(parameters, lr=2e-4, betas=(0.0, 0.99), eps=0.1),
        torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95)),
        torch.optim.LBFGS(parameters),
    ):
        subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), optimiser)
        report = examine(subject, select=["optimiser-setting-odd"], progress=False)
        assert not report.findings, type(optimiser).__name__


def sorted_distance(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output.flatten().sort().values - target.flatten().sort().values).abs().mean()


def of_means(model: nn.Module, batch: Any) -> torch.Tensor:
    return (model(batch[0]).mean() - batch[1].mean()) ** 2


def heap(model: nn.Module, **options: Any) -> Subject:
    return Subject(model, KIT.loader(*diabetes()), optimizer=torch.optim.Adam(model.parameters(), lr=1e-2), **options)


@pytest.mark.parametrize("options", [{"loss": sorted_distance}, {"step": of_means}], ids=["sorted", "means"])
def test_a_loss_that_forgets_whose_target_is_whose_is_named(options: dict[str, Any]) -> None:
    report = examine(heap(KIT.mlp(10, 32, 1), **options), select=["loss-ignores-target", "labels-misaligned"], progress=False)
    assert [f.name for f in report.findings] == ["loss-ignores-target"]
    assert report.findings[0].confidence is Confidence.LIKELY


def test_a_loss_between_distributions_is_right_where_inputs_are_mere_noise() -> None:
    def discrepancy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.exp(-torch.cdist(a, b).pow(2) / 10).mean()

        return kernel(output, output) + kernel(target, target) - 2 * kernel(output, target)

    x, _ = digits()
    noise = np.random.default_rng(0).normal(size=(len(x), 8)).astype(np.float32)
    model = KIT.mlp(8, 32, 64)
    subject = Subject(model, KIT.loader(noise, x), discrepancy, torch.optim.Adam(model.parameters(), lr=1e-2))
    report = examine(subject, select=["loss-ignores-target"], progress=False)
    assert not report.findings, report.to_text()
    assert "are no pairs" in report.not_examined["loss-ignores-target"]


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_targets_far_from_zero_do_not_make_the_loss_ignore_them(shift: float) -> None:
    x, y = diabetes()
    model = KIT.mlp(10, 32, 1)
    subject = Subject(model, KIT.loader(x, y + np.float32(shift)), nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=1e-2))
    report = examine(subject, select=["loss-ignores-target"], progress=False)
    assert "loss-ignores-target" in report.clear


def test_an_absolute_error_far_below_all_targets_does_not_ignore_them() -> None:
    """There every assignment has the same loss and the same gradient: the sum of the targets less that of the outputs."""
    x, y = diabetes()
    model = KIT.mlp(x.shape[1], 16, 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    subject = Subject(model, KIT.loader(x, y * 1e4 + 1e6), nn.L1Loss(), optimiser)
    report = examine(subject, select=["loss-ignores-target"], progress=False)
    assert not report.findings
    assert "loss-ignores-target" in report.clear

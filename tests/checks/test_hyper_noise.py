"""The gradient noise scale is measured without bias, and only batch sizes far from it are spoken of."""

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject
from sleuth.core.trial import GradientNoise
from sleuth.probes.hyperparameters.gradient_noise import SKETCH, _sketch, noise_scale
from tests.checks.trying import Outcome, attempt
from tests.kits.torch_kit import TorchKit
from tests.material import cancer, digits

KIT = TorchKit()
NAME = "batch-size-off"


def judge(subject: Subject) -> Outcome:
    return attempt(subject, {NAME}, {"gradient_noise"})


def training(batch_size: int, model: nn.Module | None = None, **options: object) -> Subject:
    model = model or KIT.mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = KIT.loader(*digits(), batch_size=batch_size)
    loss = None if "step" in options else nn.CrossEntropyLoss()
    return Subject(model, loader, loss, optimiser, **options)


def drawn(scale: float, count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Gradients of batches whose true noise scale is `scale`."""
    truth = np.zeros(200)
    truth[0] = 1.0
    noise = rng.normal(size=(count, 200)) * np.sqrt(scale / 200 / size)
    return truth + noise


@pytest.mark.parametrize(("scale", "size", "count"), [(50.0, 32, 32), (80.0, 1, 512), (20.0, 512, 16)])
def test_the_interval_holds_the_true_noise_scale(scale: float, size: int, count: int) -> None:
    rng = np.random.default_rng(0)
    points = [noise_scale(drawn(scale, count, size, rng), size, 0) for _ in range(200)]
    inside = [p.low <= scale and (p.high is None or scale <= p.high) for p in points]
    assert np.mean(inside) > 0.95
    middle = 1 / np.mean([1 / p.scale for p in points if p.scale])
    assert middle == pytest.approx(scale, rel=0.1)


def test_pure_noise_has_no_scale_but_a_bound() -> None:
    rng = np.random.default_rng(0)
    point = noise_scale(rng.normal(size=(64, 200)), 1, 0)
    assert point.high is None
    assert point.low > 60


def test_a_sketch_keeps_lengths_and_angles() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 50 * SKETCH + 17)).astype(np.float32)
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=len(one))
    a, b = _sketch(one, signs), _sketch(other, signs)
    assert a @ a == pytest.approx(float(one @ one), rel=0.1)
    assert np.square(a - b).sum() == pytest.approx(float(np.square(one - other).sum()), rel=0.1)


@pytest.mark.parametrize("batch_size", [4, 8, 16, 128, 512, 1797])
def test_usual_batches_and_small_data_at_once_are_not_accused(batch_size: int) -> None:
    outcome = judge(training(batch_size))
    assert NAME in outcome.clear


@pytest.mark.parametrize("batch_size", [1, 2])
def test_one_or_two_digits_a_step_are_too_few(batch_size: int) -> None:
    finding = judge(training(batch_size)).findings[NAME]
    assert 40 < finding.numbers["low"] < finding.numbers["noise_scale"] < finding.numbers["high"] < 150
    assert f"the batch size is {batch_size}" in finding.summary


def test_tumours_need_no_large_batch_so_single_ones_are_not_accused() -> None:
    """Their noise scale is about ten: a step on one sample is noisy, not hopeless."""
    model = KIT.mlp(30, 32, 2)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    outcome = judge(Subject(model, KIT.loader(*cancer(), batch_size=1), nn.CrossEntropyLoss(), optimiser))
    assert not outcome.findings


def test_a_batch_of_many_thousand_tumours_is_too_large() -> None:
    x, y = cancer()
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(x), 40960)
    jittered = (x[rows] + 0.1 * rng.normal(size=(len(rows), x.shape[1]))).astype(np.float32)
    model = KIT.mlp(30, 16, 2)
    loader = KIT.loader(jittered, y[rows], batch_size=20480)
    outcome = judge(Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3)))
    assert "above" in outcome.findings[NAME].summary
    assert outcome.findings[NAME].numbers["high"] < 20480 / 30


def contrast(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    codes = nn.functional.normalize(model(batch[0]), dim=1)
    return nn.functional.cross_entropy(codes @ codes.T / 0.2, torch.arange(len(codes)))


def test_a_few_batches_with_a_loss_across_samples_are_not_cut() -> None:
    outcome = judge(training(600, KIT.mlp(64, 32, 8), step=contrast))
    assert "not the mean over its samples" in outcome.not_examined[NAME]


def test_many_batches_with_a_loss_across_samples_are_compared_whole() -> None:
    outcome = judge(training(64, KIT.mlp(64, 32, 8), step=contrast))
    assert NAME in outcome.clear


def test_a_few_batches_with_batch_norm_are_not_cut() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
    outcome = judge(training(600, model))
    assert "batch normalisation" in outcome.not_examined[NAME]


def test_batches_that_sleuth_made_are_nobodys_choice() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    outcome = judge(Subject(model, digits(), nn.CrossEntropyLoss(), optimiser))
    assert "sleuth's own" in outcome.not_examined[NAME]


def test_whole_and_cut_batches_agree_on_the_noise_scale() -> None:
    torch.manual_seed(0)
    whole = judge(training(32)).history.single(GradientNoise)
    torch.manual_seed(0)
    cut = judge(training(1000)).history.single(GradientNoise)
    assert cut.points[0].low < whole.points[0].scale
    assert whole.points[0].low < cut.points[0].scale

"""How grave it is that a batch cannot be memorised, and what the numbers say about the reason."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_circles
from torch import Tensor, nn

from sleuth import Report, Subject, examine
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.stage import Severity
from sleuth.core.trial import Overfit
from tests.kits.torch_kit import TorchKit
from tests.material import cancer, diabetes, digit_images, digits

KIT = TorchKit()
NAME = "cannot-overfit-one-batch"


def judge(model: nn.Module, data: tuple[np.ndarray, ...], loss: Any, lr: float = 1e-2, **options: Any) -> Report:
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    subject = Subject(model, KIT.loader(*data), loss, optimiser, **options)
    return examine(subject, select=[NAME, "labels-misaligned"], progress=False)


def curve(last: float, floor: float = 0.0) -> tuple[float, ...]:
    """Falls from 1 above the floor to `last` above it and stays there."""
    return tuple(floor + max(last, 0.5**step) for step in range(100))


@pytest.mark.parametrize("floor", [0.0, 0.7])
@pytest.mark.parametrize(
    ("left", "severity"),
    [(0.009, None), (0.011, Severity.HINT), (0.099, Severity.HINT), (0.101, Severity.WARNING), (0.49, Severity.WARNING),
     (0.51, Severity.ERROR), (1.0, Severity.ERROR)],
)  # fmt: skip
def test_it_is_graded_by_what_is_left_above_the_floor(left: float, severity: Severity | None, floor: float) -> None:
    engine = Engine([c for c in all_checks() if c.name == NAME])
    engine.emit(Overfit(16, 100, floor, "zero", curve(left, floor), 1e-3, tuned_lr=1e-2, tuned_losses=curve(left, floor)))
    found = engine.judge().findings
    assert [f.severity for f in found] == ([] if severity is None else [severity])


def test_if_only_the_tuned_rate_memorises_the_rate_is_the_culprit() -> None:
    model = KIT.mlp(64, 32, 10)
    for lr, name in ((1e-5, "learning-rate-too-low"), (30.0, "learning-rate-too-high")):
        subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=lr))
        report = examine(subject, select=[NAME, "learning-rate-too-low", "learning-rate-too-high"], progress=False)
        assert [c.finding.name for c in report.culprits] == [name], report.to_text()
        assert NAME in report.clear


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = KIT.mlp(64, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x + 30 * torch.randn_like(x))


class Averaged(nn.Module):
    """Averages over the features before it looks at them, and then over the samples as well."""

    def __init__(self) -> None:
        super().__init__()
        self.net = KIT.mlp(64, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.mean(dim=0, keepdim=True).expand_as(x))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = KIT.mlp(1, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.mean(dim=(2, 3)))


class Bounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(KIT.mlp(10, 32, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


REASONS = {
    "noise": (Noisy, digits, nn.CrossEntropyLoss(), "from pass to pass", "random numbers"),
    "one answer": (Averaged, digits, nn.CrossEntropyLoss(), "one and the same answer", "Follow two different samples"),
    "narrow": (lambda: KIT.mlp(64, 32, 1, 10, activation="tanh"), digits, nn.CrossEntropyLoss(), "into 1", "wider"),
    "pooled": (Pooled, digit_images, nn.CrossEntropyLoss(), "1 of the 64 numbers", "pooling"),
    "levelled": (
        lambda: nn.Sequential(KIT.mlp(64, 32, 10), nn.LayerNorm(10, elementwise_affine=False)),
        digits, nn.CrossEntropyLoss(), "normalised after the last layer", "before that layer",
    ),
    "bounded": (Bounded, diabetes, nn.MSELoss(), "a sigmoid at the end", "Leave out the sigmoid"),
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_the_finding_says_what_the_numbers_point_to(reason: str) -> None:
    build, data, loss, sign, fix = REASONS[reason]
    report = judge(build(), data(), loss)
    finding = next(f for f in report.findings if f.name == NAME)
    assert sign in finding.summary, finding.summary
    assert fix in finding.fix


def test_what_was_ruled_out_is_said() -> None:
    report = judge(Pooled(), digit_images(), nn.CrossEntropyLoss())
    finding = next(f for f in report.findings if f.name == NAME)
    for excluded in ("the learning rate", "noise", "fading gradients"):
        assert excluded in finding.summary.partition("Ruled out:")[2]


def rings() -> tuple[np.ndarray, np.ndarray]:
    x, y = make_circles(1000, noise=0.05, factor=0.4, random_state=0)
    return x.astype(np.float32), y[:, None].astype(np.float32)


def test_a_line_that_tells_no_two_rings_apart_is_named() -> None:
    report = judge(nn.Linear(2, 1), rings(), nn.BCEWithLogitsLoss())
    assert [f.name for f in report.findings] == [NAME]
    assert "cannot express it" in report.findings[0].summary


def first_two(data: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x, y = data
    return np.ascontiguousarray(x[:, 2:4]), y.reshape(-1, 1).astype(np.float32)


def coins() -> tuple[np.ndarray, np.ndarray]:
    x, y = rings()
    return x, np.random.default_rng(0).permutation(y)


@pytest.mark.parametrize(
    ("data", "loss"),
    [(lambda: first_two(cancer()), nn.BCEWithLogitsLoss()), (lambda: first_two(diabetes()), nn.MSELoss()),
     (coins, nn.BCEWithLogitsLoss())],
    ids=["a task for a line", "a weak link", "nothing to learn"],
)  # fmt: skip
def test_a_small_model_is_not_accused_of_being_small(data: Any, loss: Any) -> None:
    report = judge(nn.Linear(2, 1), data(), loss)
    assert NAME not in [f.name for f in report.findings], report.to_text()


def test_a_net_that_bends_learns_the_rings() -> None:
    assert not judge(KIT.mlp(2, 16, 1), rings(), nn.BCEWithLogitsLoss()).findings


def test_where_the_floor_is_unknown_a_fall_below_half_rules_an_error_out() -> None:
    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = KIT.mlp(64, 32, 16), KIT.mlp(8, 32, 64)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, spread = self.encoder(x).chunk(2, dim=1)
            return self.decoder(mean + torch.randn_like(mean) * spread.exp()), mean, spread

    def bound(output: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
        logits, mean, spread = output
        likeness = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(1).mean()
        return likeness + (0.5 * (mean**2 + (2 * spread).exp()) - spread - 0.5).sum(1).mean()

    x, _ = digits()
    report = judge(Coder(), (x, x), bound, lr=3e-3)
    assert NAME in report.clear, report.to_text()

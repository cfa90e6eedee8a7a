"""The loss at the start is held against what guessing gives, for each loss in its own way."""

from math import log

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth import Subject
from sleuth.adapters.torch.adapter import TorchAdapter
from sleuth.checks.model.initial_loss_off import initial_loss_off
from sleuth.core.engine import Engine
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Step
from sleuth.core.stage import Severity
from sleuth.core.subject import take_apart
from sleuth.core.trial import InitialLoss
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.initial_loss import initial_loss

torch.manual_seed(0)
RANDOM = torch.Generator().manual_seed(0)
X = torch.randn(4, 32, 8, generator=RANDOM)
CLASSES = torch.randint(5, (4, 32), generator=RANDOM)
YES = (torch.rand(4, 32, 1, generator=RANDOM) < 0.2).float()
REAL = torch.randn(4, 32, 1, generator=RANDOM)


def start(model, targets, loss=None, step=None, inputs=X) -> InitialLoss:
    subject = Subject(model, None, loss, step=step)
    adapter = TorchAdapter()
    with adapter.bench(subject) as bench:
        lab = Lab(subject, adapter, 60.0, bench_=bench)
        lab.train.batches = [take_apart(batch) for batch in zip(inputs, targets, strict=True)]
        (result,) = initial_loss.run(lab)
    return result


def alarmed(result: InitialLoss) -> bool:
    engine = Engine([initial_loss_off])
    engine.emit(result)
    return bool(engine.judge().findings)


def net(width: int, *last: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, width), *last)


class Positions(nn.Module):
    """Scores of five classes for six positions: (N, C, L)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net(30)

    def forward(self, x):
        return self.net(x).reshape(len(x), 5, 6)


def masked_mean(out, y):
    each = fn.cross_entropy(out, y, reduction="none")
    kept = (y != 2).float()
    return (each * kept).sum() / kept.sum()


LN5 = log(5)
EXPECTED = {
    "classes": (net(5), CLASSES, nn.CrossEntropyLoss(), LN5),
    "label smoothing": (net(5), CLASSES, nn.CrossEntropyLoss(label_smoothing=0.2), LN5),
    "class weights": (net(5), CLASSES, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 9, 1, 1, 1])), LN5),
    "ignored classes": (net(5), CLASSES, nn.CrossEntropyLoss(ignore_index=2), LN5),
    "summed": (net(5), CLASSES, nn.CrossEntropyLoss(reduction="sum"), 32 * LN5),
    "soft targets": (net(5), fn.one_hot(CLASSES, 5) * 0.9 + 0.02, nn.CrossEntropyLoss(), LN5),
    "log-softmax": (net(5, nn.LogSoftmax(1)), CLASSES, nn.NLLLoss(), LN5),
    "scaled by the user": (net(5), CLASSES, lambda out, y: 100 * fn.cross_entropy(out, y), LN5),
    "averaged by the user": (net(5), CLASSES, lambda out, y: fn.cross_entropy(out, y, reduction="none").mean(), LN5),
    "masked by the user": (net(5), CLASSES, masked_mean, LN5),
    "summed, with ignored classes": (net(5), CLASSES, nn.CrossEntropyLoss(ignore_index=9, reduction="sum"), 32 * LN5),
    "by hand": (net(5), CLASSES, lambda out, y: (out.logsumexp(1) - out[torch.arange(len(y)), y]).mean(), LN5),
    "squares by hand, of a squeezed output": (
        net(1), REAL.squeeze(-1), lambda out, y: ((out.squeeze(1) - y) ** 2).mean(), REAL.square().mean().item(),
    ),
    "a class for each position": (Positions(), CLASSES[..., None].expand(4, 32, 6), nn.CrossEntropyLoss(), LN5),
    "a summed class for each position": (
        Positions(), CLASSES[..., None].expand(4, 32, 6), nn.CrossEntropyLoss(reduction="sum"), 32 * 6 * LN5,
    ),
    "yes or no": (net(1), YES, nn.BCEWithLogitsLoss(), log(2)),
    "yes or no, from probabilities": (net(1, nn.Sigmoid()), YES, nn.BCELoss(), log(2)),
    "pos_weight": (net(1), YES, nn.BCEWithLogitsLoss(pos_weight=torch.tensor([4.0])), log(2) * (1 + 3 * YES.mean().item())),
    "squares": (net(1), REAL, nn.MSELoss(), REAL.square().mean().item()),
    "distances": (net(1), REAL, nn.L1Loss(), REAL.abs().mean().item()),
    "images through a sigmoid": (net(1, nn.Sigmoid()), YES * 0.1, nn.MSELoss(), ((YES * 0.1 - 0.5) ** 2).mean().item()),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_the_loss_of_guessing_is_known(name: str) -> None:
    model, targets, loss, expected = EXPECTED[name]
    result = start(model, targets, loss)
    assert result.expected == pytest.approx(expected, rel=1e-3)
    assert result.measured == pytest.approx(expected, rel=0.35)
    assert not alarmed(result)


SOFT = torch.softmax(3 * X[..., :5], -1)


@pytest.mark.parametrize(("reduction", "factor"), [("batchmean", 1.0), ("sum", 32.0), ("mean", 0.2)])
def test_a_divergence_starts_below_ln_k(reduction: str, factor: float) -> None:
    result = start(net(5, nn.LogSoftmax(1)), SOFT, nn.KLDivLoss(reduction=reduction))
    assert result.expected == pytest.approx(factor * LN5)
    assert 0.2 * result.expected < result.measured < 1.3 * result.expected
    assert not alarmed(result)


def test_a_student_that_is_sure_of_wrong_answers_is_accused() -> None:
    model = net(5, nn.LogSoftmax(1))
    model[2].weight.data *= 60
    assert alarmed(start(model, SOFT, nn.KLDivLoss(reduction="batchmean")))


@pytest.mark.parametrize("loss", [nn.HuberLoss(), nn.SmoothL1Loss(), nn.SmoothL1Loss(beta=0.3), nn.HuberLoss(delta=0.3)])
def test_the_huber_losses_start_below_their_bound(loss: nn.Module) -> None:
    result = start(net(1), REAL, loss)
    assert 0.4 * result.expected < result.measured < 1.6 * result.expected


def test_a_head_that_is_sure_of_wrong_answers_is_accused() -> None:
    model = net(5)
    model[2].bias.data[0] = 12
    assert alarmed(start(model, CLASSES, nn.CrossEntropyLoss()))
    model[2].weight.data *= 100
    assert alarmed(start(model, REAL.expand(4, 32, 5), nn.MSELoss()))


def test_a_pretrained_model_may_start_below_guessing() -> None:
    model = net(5)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-2)
    for _ in range(200):
        optimiser.zero_grad()
        fn.cross_entropy(model(X.flatten(0, 1)), CLASSES.flatten()).backward()
        optimiser.step()
    result = start(model, CLASSES, nn.CrossEntropyLoss())
    assert result.measured < 0.7 * result.expected
    assert not alarmed(result)


@pytest.mark.parametrize("norm", [nn.Identity, lambda: nn.BatchNorm1d(32), lambda: nn.Dropout(0.5)])
def test_normalised_and_dropped_out_nets_are_not_accused(norm) -> None:
    layers = [layer for _ in range(6) for layer in (nn.Linear(32, 32), norm(), nn.ReLU())]
    model = nn.Sequential(nn.Linear(8, 32), *layers, nn.Linear(32, 5))
    assert not alarmed(start(model, CLASSES, nn.CrossEntropyLoss()))


@pytest.mark.parametrize(
    ("targets", "loss", "reason"),
    [
        (CLASSES, lambda out, y: out.square().mean(), "not known"),
        (
            torch.softmax(X[..., :5], -1).log(),
            lambda out, y: fn.kl_div(fn.log_softmax(out, 1), y, log_target=True),
            "probabilities",
        ),
        (CLASSES, lambda out, y: fn.triplet_margin_loss(out, out.roll(1, 0), out.roll(2, 0)), "not known for triplet"),
        (CLASSES, lambda out, y: fn.gaussian_nll_loss(out[:, 0], y.float(), out[:, 1] ** 2 + 1), "not known for gaussian"),
        (CLASSES, lambda out, y: fn.mse_loss(out, torch.zeros_like(out)), "one output and one target"),
        (torch.zeros(4, 32, 5), nn.MSELoss(), "loss of zero"),
        (CLASSES, lambda out, y: fn.cross_entropy(out @ out.T / 0.01, torch.arange(32)), "contrastive"),
        (CLASSES, nn.CrossEntropyLoss(weight=torch.rand(5), label_smoothing=0.1), "depends on both"),
    ],
)
def test_what_guessing_gives_is_not_guessed(targets, loss, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        start(net(5), targets, loss)


def test_of_several_losses_the_worst_start_is_told() -> None:
    def loss(out, y):
        return fn.cross_entropy(out, y) + fn.mse_loss(1000 * out[:, 0], y.float())

    assert "answering 0" in start(net(5), CLASSES, loss).how


def test_running_statistics_are_as_before() -> None:
    model = nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5))
    subject = Subject(model, None, nn.CrossEntropyLoss())
    with TorchAdapter().bench(subject) as bench:
        lab = Lab(subject, TorchAdapter(), 60.0, bench_=bench)
        lab.train.batches = [take_apart(batch) for batch in zip(X, CLASSES, strict=True)]
        list(initial_loss.run(lab))
        assert np.all(bench.model[1].running_mean.numpy() == 0)


@pytest.mark.parametrize(
    ("end", "steps", "severity"),
    [
        (0.2, 240, Severity.HINT),
        (1.4, 240, Severity.WARNING),
        (4.6, 240, Severity.WARNING),
        (0.2, 60, Severity.WARNING),
    ],
)
def test_a_training_that_came_below_guessing_has_undone_its_start(end: float, steps: int, severity: Severity) -> None:
    engine = Engine([initial_loss_off])
    engine.emit(InitialLoss(4.6, 1.0, 0.1, "answering 0 to every sample"))
    for step, loss in enumerate(np.geomspace(4.6, end, steps)):
        engine.emit(Step(step + 1, float(loss), 1e-3))
    (finding,) = engine.judge().findings
    assert finding.severity is severity

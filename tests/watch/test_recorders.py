"""What is recorded of a loop beside its steps: losses and classes."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from sleuth.core.observation import LossCall, Predictions
from tests.watch.recorded_loops import stepping, watched
from tests.watch.scenarios import X, Y, compiled, mlp


def test_a_loss_is_described_as_an_examination_would() -> None:
    model = nn.Sequential(mlp(), nn.Softmax(-1))
    calls = stepping(model, lambda: functional.cross_entropy(model(X), Y)).many(LossCall)
    assert len(calls) == 3
    call = calls[0]
    output, target = call.argument("output"), call.argument("target")
    assert (call.name, call.family, call.reduction, call.output_shape) == ("cross_entropy", "cross-entropy", "mean", ())
    assert call.value == call.returned
    assert call.location.text.startswith("calls = stepping(model, lambda: functional.cross_entropy")
    assert (output.facts.shape, output.producer, output.producer_axis) == ((64, 4), "softmax", 1)
    assert output.axis_sums[1] == pytest.approx((1, 1), abs=1e-5)
    assert target.facts.dtype == "int64"
    assert target.facts.statistics.max == 3


@pytest.mark.parametrize(
    ("make", "producer", "axis", "behind"),
    [
        (lambda z: z.log_softmax(0), "log_softmax", 0, None),
        (lambda z: torch.sigmoid(torch.softmax(z, 1)).clamp(0, 1).view(-1, 4), "sigmoid", None, "softmax"),
        (lambda z: functional.relu6(z).float().contiguous(), "relu6", None, None),
        (lambda z: functional.hardtanh(z, -2, 2), None, None, None),
        (lambda z: z.softmax(1) + 1, None, None, None),
    ],
)
def test_what_squashed_an_output_is_read_from_its_graph(make, producer, axis, behind) -> None:
    model = mlp()
    call = stepping(model, lambda: functional.mse_loss(make(model(X)), torch.ones(64, 4))).many(LossCall)[0]
    output = call.argument("output")
    assert (output.producer, output.producer_axis, output.behind) == (producer, axis, behind)


def test_a_loss_behind_weights_sums_and_scales_is_found() -> None:
    model = mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def loss():
        scores = model(X)
        kept = functional.cross_entropy(scores, Y) * 0.5 + functional.mse_loss(scores, torch.zeros(64, 4))
        return scaler.scale(kept)

    history = stepping(model, loss, steps=1)
    calls = history.many(LossCall)
    assert [c.name for c in calls] == ["cross_entropy", "mse_loss"]
    assert calls[0].value == calls[1].value == pytest.approx(0.5 * calls[0].returned + calls[1].returned, rel=1e-5)


def test_a_loss_that_nobody_sends_backward_is_not_reported() -> None:
    """A metric with a graph, one without, another model's training, and a critic's loss for the watched model's samples."""
    model, other = mlp(), mlp()
    second = torch.optim.SGD(other.parameters(), 1e-2)

    def loss():
        scores = model(X)
        functional.l1_loss(scores, torch.zeros(64, 4))
        with torch.no_grad():
            functional.mse_loss(scores, torch.zeros(64, 4))
        second.zero_grad()
        functional.huber_loss(other(X), torch.zeros(64, 4)).backward()
        second.step()
        return functional.cross_entropy(scores, Y)

    history = stepping(model, loss)
    assert {c.name for c in history.many(LossCall)} == {"cross_entropy"}
    assert {p.outputs for p in history.many(Predictions)} == {4}


def test_of_two_sides_the_one_with_a_graph_is_the_output() -> None:
    model = mlp()
    call = stepping(model, lambda: functional.mse_loss(torch.ones(64, 4), model(X))).many(LossCall)[0]
    assert call.argument("output").facts.path == "target"
    assert call.argument("target").facts.path == "input"


def test_what_the_model_made_itself_is_no_target() -> None:
    model = mlp()
    call = stepping(model, lambda: functional.mse_loss(model(X), model(X + 0.1))).many(LossCall)[0]
    assert call.argument("target") is None


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_every_pair_that_is_wanted_is_no_broadcast() -> None:
    model = mlp()
    pairs = stepping(model, lambda: functional.mse_loss(model(X)[:, None], torch.ones(1, 64, 4))).many(LossCall)
    assert pairs[0].broadcast is None
    blown = stepping(model, lambda: functional.mse_loss(model(X)[:, :1], torch.ones(64))).many(LossCall)
    assert blown[0].broadcast == (64, 64)


def test_a_loss_by_hand_is_absent_and_says_why() -> None:
    model = mlp()
    history = stepping(model, lambda: (model(X) ** 2).mean())
    assert not history.has(LossCall)
    assert "written by hand" in history.why_absent(LossCall)


def test_a_loss_that_cannot_be_listened_to_is_absent_and_says_why() -> None:
    torch._dynamo.reset()
    training = compiled()
    loop = training.loop()
    next(loop)

    def run(w):
        for _ in range(4):
            next(loop)

    history = watched(training.model, training.optimisers, run)
    training.closing()
    torch._dynamo.utils.counters.clear()
    assert not history.has(LossCall)
    assert "compiled" in history.why_absent(LossCall)


def test_a_lost_loss_is_the_untrained_models_only_at_the_first_step() -> None:
    model = mlp()
    number = iter(range(10))
    history = stepping(model, lambda: functional.cross_entropy(model(X) * (float("nan") if next(number) else 1.0), Y))
    assert [c.value is None for c in history.many(LossCall)] == [False]


def test_listening_runs_no_checkpointed_forward_again() -> None:
    model, runs = mlp(), []

    def part(x):
        runs.append(1)
        return torch.softmax(model(x), 1)

    stepping(model, lambda: functional.cross_entropy(checkpoint(part, X, use_reentrant=False), Y), steps=3)
    assert len(runs) == 6


def test_calls_are_few_however_long_the_training() -> None:
    model = mlp()
    history = stepping(model, lambda: functional.cross_entropy(model(X), Y), steps=300)
    assert history.count(LossCall) == 3
    assert 30 < history.count(Predictions) < 60


def test_classes_are_counted_without_what_the_loss_ignores() -> None:
    model = mlp()
    found = stepping(model, lambda: functional.cross_entropy(model(X), Y, ignore_index=1)).many(Predictions)[0]
    kept = int((Y != 1).sum())
    assert found.samples == sum(found.predicted.values()) == kept < 64
    assert found.targets == {int(c): int((c == Y).sum()) for c in (0, 2, 3)}


def test_classes_of_pixels_stand_on_axis_one() -> None:
    model = nn.Conv2d(1, 3, 1)
    images, masks = torch.rand(8, 1, 40, 40), torch.randint(0, 3, (8, 40, 40))
    scores = model(images).detach()
    found = stepping(model, lambda: functional.cross_entropy(model(images), masks)).many(Predictions)[0]
    assert found.outputs == 3
    assert 1000 < found.samples <= 4096
    assert found.right / found.samples == pytest.approx((scores.argmax(1) == masks).float().mean().item(), abs=0.05)


def test_one_output_answers_yes_or_no() -> None:
    model = nn.Linear(12, 1)
    target = (X[:, :1] > 0).float()
    right = int(((model(X) > 0) == (target > 0)).sum())
    found = stepping(model, lambda: functional.binary_cross_entropy_with_logits(model(X), target)).many(Predictions)[0]
    assert (found.outputs, found.samples, found.right) == (2, 64, right)


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores: functional.binary_cross_entropy_with_logits(scores, torch.ones(64, 4)),
        lambda scores: functional.cross_entropy(scores, torch.full((64, 4), 0.25)),
        lambda scores: functional.binary_cross_entropy_with_logits(scores[:, 0], torch.full((64,), 0.3)),
        lambda scores: (functional.cross_entropy(scores, Y, reduction="none") * X[:, 0]).mean(),
    ],
    ids=["several labels at once", "probabilities", "a soft yes", "weighed by hand"],
)
def test_where_no_one_class_is_right_nothing_is_counted(loss) -> None:
    model = mlp()
    assert not stepping(model, lambda: loss(model(X))).has(Predictions)

"""With step=, what the model is given, what it returns and what the loss compares it with are seen by running the step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sleuth import Subject
from sleuth.adapters import adapter_for
from sleuth.core.subject import Usage, take_apart
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.changed_inputs import first_samples
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.roles import answers, with_inputs
from tests.checks.looking import look, training
from tests.material import digits

X = torch.rand(6, 8)
Y = torch.arange(6) % 3
W = torch.rand(6)
IDS = torch.arange(24).reshape(6, 4) % 5


class Labelled(nn.Module):
    """Computes its own loss, as models of some hubs do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 3)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Conditional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.net = nn.Embedding(3, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor, kind: Tensor) -> Tensor:
        return self.net(x + self.table(kind))


class Letters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.net = nn.Embedding(5, 8), nn.Linear(8, 5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(self.table(ids))


class Parts(nn.Module):
    """Never called as a whole: the step calls its encoder and its decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 2), nn.Linear(2, 8)


def line() -> nn.Module:
    return nn.Linear(8, 3)


def square() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8))


STEPS: dict[str, tuple[Callable[[], nn.Module], Any, Callable[..., Any], Usage | None]] = {
    "a pair": (line, (X, Y), lambda m, b: F.cross_entropy(m(b[0]), b[1]), Usage(("0",), ("1",))),
    "target first": (line, (Y, X), lambda m, b: F.cross_entropy(m(b[1]), b[0]), Usage(("1",), ("0",))),
    "a weight last": (
        line, (X, Y, W), lambda m, b: (F.cross_entropy(m(b[0]), b[1], reduction="none") * b[2]).mean(), Usage(("0",), ("1",))
    ),
    "labels that are not used": (square, (X, Y), lambda m, b: F.mse_loss(m(b[0]), b[0]), Usage(("0",), ("0",))),
    "an altered copy is no target": (square, (X, Y), lambda m, b: F.mse_loss(m(b[0] + 1), 2 * b[0]), Usage(("0",), ())),
    "no target at all": (square, (X, Y), lambda m, b: m(b[0]).pow(2).mean(), Usage(("0",), ())),
    "both are inputs": (Conditional, (X, Y), lambda m, b: F.mse_loss(m(*b), b[0]), Usage(("0", "1"), ("0",))),
    "a mapping": (
        line, {"pixels": X, "kind": Y}, lambda m, b: F.cross_entropy(m(b["pixels"]), b["kind"]), Usage(("pixels",), ("kind",))
    ),
    "written by hand": (line, (X, Y), lambda m, b: (m(b[0]) - F.one_hot(b[1], 3)).pow(2).mean(), Usage(("0",), ("1",))),
    "by hand, with a weight": (
        line, (X, W, Y), lambda m, b: (b[1][:, None] * (m(b[0]) - F.one_hot(b[2], 3)).pow(2)).mean(), Usage(("0",), ("2",))
    ),
    "a loss of the model's own": (Labelled, (X, Y), lambda m, b: m(b[0], labels=b[1])["loss"], Usage(("0",), ("1",))),
    "the next letter": (
        Letters, IDS, lambda m, b: F.cross_entropy(m(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten()), Usage(("",), ())
    ),
    "parts of a model": (Parts, (X, Y), lambda m, b: F.mse_loss(m.decoder(m.encoder(b[0])), b[0]), Usage(("0",), ("0",))),
    "through NumPy": (line, (X, Y), lambda m, b: F.cross_entropy(m(b[0]), torch.tensor(b[1].numpy())), None),
    "not through the model": (line, (X, Y), lambda m, b: b[0].sum() * m.weight.sum(), None),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_what_a_step_does_with_a_batch_is_followed(name: str) -> None:
    build, batch, step, expected = STEPS[name]
    subject = Subject(build(), [batch], step=step)
    with adapter_for(subject.model).bench(subject) as bench:
        assert bench.usage(take_apart(batch)) == expected


def opened(subject: Subject) -> Lab:
    return Lab(subject, adapter_for(subject.model), 60.0)


def test_the_batches_are_taken_apart_as_the_step_uses_them() -> None:
    subject = Subject(line(), [(Y, X, W)] * 3, step=lambda m, b: (F.cross_entropy(m(b[1]), b[0], reduction="none") * b[2]).mean())
    lab = opened(subject)
    with lab.adapter.bench(subject) as lab.bench_:
        list(reading.run(lab))
    assert all(batch.inputs is X and batch.target is Y for batch in lab.train.batches)


def test_a_split_of_the_users_own_is_kept() -> None:
    subject = Subject(
        line(), [(X, Y)] * 3, step=lambda m, b: F.cross_entropy(m(b[0]), b[1]), split=lambda b: ((b[0], b[1]), None)
    )
    lab = opened(subject)
    with lab.adapter.bench(subject) as lab.bench_:
        list(reading.run(lab))
    assert all(batch.target is None for batch in lab.train.batches)


def test_looking_at_a_step_leaves_weights_and_dice_as_they_were() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    subject = Subject(model, [(X, Y)] * 3, step=lambda m, b: F.cross_entropy(m(b[0]), b[1]))
    lab = opened(subject)
    with lab.adapter.bench(subject) as lab.bench_:
        before, dice = lab.bench.snapshot(), torch.get_rng_state()
        list(reading.run(lab))
        after = lab.bench.snapshot()
    assert torch.equal(dice, torch.get_rng_state())
    assert all(torch.equal(before.tensors[k], after.tensors[k]) for k in before.tensors)


def test_every_call_of_the_model_counts_as_an_answer() -> None:
    subject = Subject(square(), [(X, Y)], step=lambda m, b: F.mse_loss(m(b[0]), m(-b[0])))
    lab = opened(subject)
    with lab.adapter.bench(subject) as lab.bench_:
        one, other = answers(lab, take_apart((X, Y)))
    assert torch.allclose(one, subject.model(X))
    assert torch.allclose(other, subject.model(-X))


def test_fewer_inputs_cut_the_targets_too() -> None:
    subject = Subject(line(), [(X, Y)], step=lambda m, b: F.cross_entropy(m(b[0]), b[1]))
    lab = opened(subject)
    batch = first_samples(lab, take_apart((X, Y)), 5)
    fewer = with_inputs(lab, batch, X[:3] + 1)
    assert torch.equal(fewer.raw[0], X[:3] + 1)
    assert torch.equal(fewer.raw[1], Y[:3])


def classify(model: nn.Module, batch: Any) -> Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


class Blind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(torch.ones_like(x))


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.reshape(64, -1).T.contiguous())


class TwoFaced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x if self.training else -3 * x)


@pytest.mark.parametrize(
    ("model", "name"), [(Blind, "input-ignored"), (Mixing, "samples-mix"), (TwoFaced, "train-eval-disagree")]
)
def test_what_is_wrong_with_the_outputs_is_seen_inside_a_step(model: type[nn.Module], name: str) -> None:
    assert name in look(training(model(), step=classify), name).names


def views(model: nn.Module, batch: Any) -> Tensor:
    one, other = (F.normalize(model(batch[0] + 0.1 * torch.randn_like(batch[0])), dim=1) for _ in range(2))
    return F.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)))


@pytest.mark.parametrize("step", [classify, views])
def test_a_healthy_step_is_looked_at_and_not_accused(step: Callable[..., Tensor]) -> None:
    names = ("input-ignored", "samples-mix", "train-eval-disagree")
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    found = look(training(model, step=step), *names)
    assert not found.findings
    assert not found.not_examined


def test_a_hidden_target_among_many_parts_is_judged() -> None:
    x, y = digits()
    weight = np.ones(len(x), dtype=np.float32)

    def step(model: nn.Module, batch: Any) -> Tensor:
        labels, pixels, share = batch
        return (F.cross_entropy(model(pixels), labels, reduction="none") * share).mean()

    from sleuth import examine

    model = nn.Linear(64, 10)
    subject = training(model, data=(y, x, weight), step=step)
    report = examine(subject, select=["labels-misaligned", "class-imbalance", "loss-ignores-target"], progress=False)
    assert not report.findings, report.to_text()
    assert set(report.clear) == {"labels-misaligned", "class-imbalance", "loss-ignores-target"}


def test_that_the_last_part_is_the_target_is_seen_and_not_guessed() -> None:
    from sleuth import examine

    x, y = digits()

    def step(model: nn.Module, batch: Any) -> Tensor:
        left, right, labels = batch
        return F.cross_entropy(model(torch.cat([left, right], dim=1)), labels)

    subject = training(nn.Linear(64, 10), data=(x[:, :32], x[:, 32:], y), step=step)
    assert "labels-misaligned" in examine(subject, select=["labels-misaligned"], progress=False).clear

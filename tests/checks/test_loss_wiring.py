"""What goes into the loss is judged by its values: right wirings of every kind are silent, wrong ones are told apart."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth import Subject
from sleuth.adapters.torch.bench import open_bench
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.observation import LossCall, Observation
from sleuth.core.subject import take_apart

WIRING = {
    "output-target-mismatch", "loss-broadcasts", "double-softmax", "missing-log-softmax", "softmax-wrong-axis",
    "single-unit-softmax",
}  # fmt: skip
torch.manual_seed(0)
X = torch.rand(16, 6, generator=torch.Generator().manual_seed(1))
CLASSES = torch.randint(4, (16,), generator=torch.Generator().manual_seed(2))
SEQUENCE = torch.randint(4, (16, 5), generator=torch.Generator().manual_seed(3))
MASK = torch.randint(4, (16, 5, 5), generator=torch.Generator().manual_seed(4))
LABELS = torch.randint(2, (16, 4), generator=torch.Generator().manual_seed(5)).float()
SOFT = torch.rand(16, 4, generator=torch.Generator().manual_seed(6)).softmax(1)


class Net(nn.Module):
    """A linear layer of some width, and whatever is done with its output."""

    def __init__(self, width: int, last=lambda x: x) -> None:
        super().__init__()
        self.linear = nn.Linear(6, width)
        self.last = last

    def forward(self, x):
        return self.last(self.linear(x))


def observed(model, y, loss=None, step=None, x=X) -> list[Observation]:
    with open_bench(Subject(model, None, loss, step=step)) as bench:
        batches = [(x, y), (x.flip(0), y)]
        return [o for i, batch in enumerate(batches) for o in bench.observe(take_apart(batch), i)]


def found(*args, **options) -> list[str]:
    engine = Engine(c for c in all_checks() if c.name in WIRING)
    for observation in observed(*args, **options):
        engine.emit(observation)
    judgement = engine.judge()
    assert not [f for f in judgement.findings if f.name == "sleuth-failed"], judgement.findings
    return sorted(f.name for f in judgement.findings)


def calls_of(*args, **options) -> list[LossCall]:
    return [o for o in observed(*args, **options) if isinstance(o, LossCall)]


def softmax(axis):
    return lambda x: fn.softmax(x, dim=axis)


def as_sequence(x):
    return x.reshape(16, 4, 5)


def as_image(x):
    return x.reshape(16, 4, 5, 5)


def by_hand(out, y):
    """Cross-entropy from probabilities: the softmax before it is right."""
    return -torch.log(out[torch.arange(len(y)), y] + 1e-9).mean()


def by_hand_at(axis):
    """The same for sequences: the classes stand at `axis`."""
    return lambda out, y: -torch.log(out.gather(axis, y.unsqueeze(axis)) + 1e-9).mean()


def distilled(out, y):
    teacher = torch.linspace(-1, 1, 64).reshape(16, 4).softmax(1)
    return fn.cross_entropy(out, teacher) + fn.kl_div(fn.log_softmax(out, 1), teacher, reduction="batchmean")


def self_distilled(out, y):
    return fn.cross_entropy(out, fn.softmax(out.detach() / 2, dim=1))


def chamfer(out, y):
    return (out.unsqueeze(1) - y.unsqueeze(0)).abs().min(1).values.mean()


def smoothed_by_hand(out, y):
    logs = fn.log_softmax(out, dim=-1)
    return 0.9 * fn.nll_loss(logs, y) - 0.1 * logs.mean()


def focal(out, y):
    each = fn.binary_cross_entropy_with_logits(out, y, reduction="none")
    return ((1 - torch.exp(-each)) ** 2 * each).mean()


HEALTHY = {
    "cross-entropy": (Net(4), CLASSES, nn.CrossEntropyLoss()),
    "label smoothing": (Net(4), CLASSES, nn.CrossEntropyLoss(label_smoothing=0.1)),
    "class weights": (Net(4), CLASSES, nn.CrossEntropyLoss(weight=torch.rand(4))),
    "ignore_index": (Net(20, as_sequence), SEQUENCE, nn.CrossEntropyLoss(ignore_index=0)),
    "soft targets": (Net(4), SOFT, nn.CrossEntropyLoss()),
    "distillation": (Net(4), CLASSES, distilled),
    "self-distillation": (Net(4), CLASSES, self_distilled),
    "sequence": (Net(20, as_sequence), SEQUENCE, nn.CrossEntropyLoss()),
    "segmentation": (Net(100, as_image), MASK, nn.CrossEntropyLoss()),
    "language model": (
        Net(20, lambda x: x.reshape(16, 5, 4)), SEQUENCE, lambda o, y: fn.cross_entropy(o.flatten(0, 1), y.flatten()),
    ),
    "log-softmax and NLL": (Net(4, nn.LogSoftmax(1)), CLASSES, nn.NLLLoss()),
    "log-softmax and cross-entropy": (Net(4, nn.LogSoftmax(1)), CLASSES, nn.CrossEntropyLoss()),
    "log of softmax and NLL": (Net(4, lambda x: torch.log(x.softmax(1) + 1e-8)), CLASSES, nn.NLLLoss()),
    "log-softmax over channels": (Net(100, lambda x: fn.log_softmax(as_image(x), 1)), MASK, nn.NLLLoss()),
    "log-softmax, then flattened": (
        Net(20, lambda x: fn.log_softmax(x.reshape(16, 5, 4), -1)), SEQUENCE,
        lambda o, y: fn.nll_loss(o.reshape(-1, 4), y.reshape(-1)),
    ),
    "log-softmax, then transposed": (
        Net(20, lambda x: fn.log_softmax(x.reshape(16, 5, 4), -1).transpose(1, 2)), SEQUENCE, nn.NLLLoss(),
    ),
    "smoothing by hand": (Net(4), CLASSES, smoothed_by_hand),
    "multi-label": (Net(4), LABELS, nn.BCEWithLogitsLoss()),
    "multi-label with sigmoid": (Net(4, torch.sigmoid), LABELS, nn.BCELoss()),
    "pos_weight": (Net(4), LABELS, nn.BCEWithLogitsLoss(pos_weight=torch.full((4,), 5.0))),
    "focal": (Net(4), LABELS, focal),
    "binary": (Net(1, lambda x: x.squeeze(1)), LABELS[:, 0], nn.BCEWithLogitsLoss()),
    "binary with sigmoid": (Net(1, lambda x: torch.sigmoid(x).squeeze(1)), LABELS[:, 0], nn.BCELoss()),
    "one column of two softmaxed": (Net(2, lambda x: x.softmax(1)[:, 1]), LABELS[:, 0], nn.BCELoss()),
    "scores that happen to lie in [0, 1]": (Net(4, lambda x: x.clamp(0, 1)), LABELS, nn.BCEWithLogitsLoss()),
    "ReLU scores": (Net(4, torch.relu), CLASSES, nn.CrossEntropyLoss()),
    "bounded on purpose": (Net(4, lambda x: 10 * torch.tanh(x)), CLASSES, nn.CrossEntropyLoss()),
    "scaled sigmoid scores": (Net(4, lambda x: 8 * torch.sigmoid(x) - 4), CLASSES, nn.CrossEntropyLoss()),
    "softmax and a loss by hand": (Net(4, softmax(1)), CLASSES, by_hand),
    "softmax per position and a loss by hand": (
        Net(20, lambda x: x.reshape(16, 5, 4).softmax(-1)), SEQUENCE, by_hand_at(-1),
    ),
    "softmax over channels and a loss by hand": (Net(100, lambda x: as_image(x).softmax(1)), MASK, by_hand_at(1)),
    "which position for each of four points": (Net(20, lambda x: x.reshape(16, 5, 4).softmax(1)), SEQUENCE[:, :4], by_hand_at(1)),
    "as many classes as positions": (Net(16, lambda x: x.reshape(16, 4, 4).softmax(1)), SEQUENCE[:, :4], by_hand_at(1)),
    "attention beside the scores": (
        Net(20, lambda x: (x.reshape(16, 5, 4).softmax(1), x.reshape(16, 5, 4).log_softmax(-1))), SEQUENCE,
        lambda out, y: -out[1].gather(-1, y.unsqueeze(-1)).mean() + 0.01 * out[0].square().mean(),
    ),
    "Brier score": (Net(4, softmax(1)), fn.one_hot(CLASSES, 4).float(), nn.MSELoss()),
    "KL on logs": (Net(4, nn.LogSoftmax(1)), SOFT, nn.KLDivLoss(reduction="batchmean")),
    "attention inside": (Net(6, lambda x: (x @ x.T).softmax(0) @ x[:, :4]), CLASSES, nn.CrossEntropyLoss()),
    "regression": (Net(1), X[:, :1], nn.MSELoss()),
    "flat regression": (Net(1, lambda x: x.squeeze(-1)), X[:, 0], nn.L1Loss()),
    "sides swapped": (Net(1), X[:, :1], lambda out, y: fn.mse_loss(y, out)),
    "least-squares GAN": (Net(1), CLASSES, lambda out, y: fn.mse_loss(out, torch.tensor(1.0))),
    "quantiles by hand": (Net(3), X[:, 0], lambda out, y: (out - y.unsqueeze(1)).abs().mean()),
    "every pair on purpose": (Net(2), X[:, :2], chamfer),
    "a list to be ranked": (Net(1, lambda x: x.squeeze(1).softmax(0)), torch.rand(16).softmax(0), nn.MSELoss()),
    "Dice by hand": (Net(4, torch.sigmoid), LABELS, lambda out, y: 1 - 2 * (out * y).sum() / (out + y).sum()),
    "half precision": (Net(4).bfloat16(), CLASSES, lambda out, y: fn.cross_entropy(out.float(), y), None, X.bfloat16()),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_a_right_wiring_is_not_accused(name: str) -> None:
    assert found(*HEALTHY[name]) == []


@pytest.mark.parametrize("rows", [1, 2])
def test_a_batch_of_one_or_two_is_not_accused(rows: int) -> None:
    for model, y, loss in (
        HEALTHY[n] for n in ("cross-entropy", "log-softmax and NLL", "multi-label with sigmoid", "regression")
    ):
        assert found(model, y[:rows], loss, None, X[:rows]) == []


def test_zero_scores_are_not_accused() -> None:
    model = Net(4)
    nn.init.zeros_(model.linear.weight)
    nn.init.zeros_(model.linear.bias)
    assert found(model, CLASSES, nn.CrossEntropyLoss()) == []
    model.last = nn.LogSoftmax(1)
    assert found(model, CLASSES, nn.NLLLoss()) == []


SICK = {
    "double-softmax": {
        "a layer": (Net(4, nn.Softmax(1)), CLASSES, nn.CrossEntropyLoss()),
        "a function": (Net(4, softmax(-1)), CLASSES, fn.cross_entropy),
        "inside a loss of one's own": (Net(4), CLASSES, lambda out, y: 0.5 * fn.cross_entropy(out.softmax(1), y)),
        "by hand": (Net(4, lambda x: x.exp() / x.exp().sum(1, keepdim=True)), CLASSES, nn.CrossEntropyLoss()),
        "segmentation": (Net(100, lambda x: as_image(x).softmax(1)), MASK, nn.CrossEntropyLoss()),
        "sequence": (Net(20, lambda x: x.reshape(16, 5, 4).softmax(-1).transpose(1, 2)), SEQUENCE, nn.CrossEntropyLoss()),
        "soft targets": (Net(4, softmax(1)), SOFT, nn.CrossEntropyLoss()),
        "sigmoid and cross-entropy": (Net(4, nn.Sigmoid()), CLASSES, nn.CrossEntropyLoss()),
        "sigmoid twice": (Net(4, nn.Sigmoid()), LABELS, nn.BCEWithLogitsLoss()),
        "sigmoid in place": (Net(4, lambda x: x.sigmoid_()), LABELS, nn.BCEWithLogitsLoss()),
        "sigmoid by hand": (Net(4, lambda x: 1 / (1 + torch.exp(-x))), LABELS, nn.BCEWithLogitsLoss()),
        "softmax and binary scores": (Net(4, softmax(1)), LABELS, nn.BCEWithLogitsLoss()),
        "sigmoid of sigmoid": (Net(4, nn.Sigmoid()), LABELS, lambda out, y: fn.binary_cross_entropy(torch.sigmoid(out), y)),
        "log-softmax of softmax": (Net(4, softmax(1)), CLASSES, lambda out, y: fn.nll_loss(fn.log_softmax(out, 1), y)),
    },
    "missing-log-softmax": {
        "raw scores into NLL": (Net(4), CLASSES, nn.NLLLoss()),
        "probabilities into NLL": (Net(4, softmax(1)), CLASSES, nn.NLLLoss()),
        "segmentation": (Net(100, as_image), MASK, nn.NLLLoss()),
        "raw scores into BCE": (Net(4), LABELS, nn.BCELoss()),
        "tanh into BCE": (Net(4, torch.tanh), LABELS, fn.binary_cross_entropy),
        "probabilities into KL": (Net(4, softmax(1)), SOFT, nn.KLDivLoss(reduction="batchmean")),
    },
    "softmax-wrong-axis": {
        "over the batch": (Net(4, nn.LogSoftmax(0)), CLASSES, nn.NLLLoss()),
        "over the batch into cross-entropy": (Net(4, softmax(0)), CLASSES, nn.CrossEntropyLoss()),
        "over positions": (Net(20, lambda x: fn.log_softmax(as_sequence(x), -1)), SEQUENCE, nn.NLLLoss()),
        "over width": (Net(100, lambda x: fn.log_softmax(as_image(x), 3)), MASK, nn.NLLLoss()),
        "over positions, then flattened": (
            Net(20, lambda x: fn.log_softmax(x.reshape(16, 5, 4), 1)), SEQUENCE,
            lambda o, y: fn.nll_loss(o.reshape(-1, 4), y.reshape(-1)),
        ),
        "over the batch into BCE": (Net(1, softmax(0)), LABELS[:, :1], nn.BCELoss()),
        "over the batch, loss by hand": (Net(4, softmax(0)), CLASSES, by_hand),
        "over time, loss by hand": (Net(20, lambda x: x.reshape(16, 5, 4).softmax(1)), SEQUENCE, by_hand_at(-1)),
        "over the batch of sequences, loss by hand": (
            Net(20, lambda x: x.reshape(16, 5, 4).softmax(0)), SEQUENCE, by_hand_at(-1),
        ),
        "logs over width, loss by hand": (
            Net(100, lambda x: as_image(x).log_softmax(-1)), MASK, lambda out, y: -out.gather(1, y.unsqueeze(1)).mean(),
        ),
    },
    "single-unit-softmax": {
        "BCE": (Net(1, softmax(1)), LABELS[:, :1], nn.BCELoss()),
        "squeezed": (Net(1, lambda x: x.softmax(1).squeeze(1)), LABELS[:, 0], nn.BCELoss()),
        "log-softmax": (Net(1, nn.LogSoftmax(1)), torch.zeros(16).long(), nn.NLLLoss()),
        "cross-entropy": (Net(1), torch.zeros(16).long(), nn.CrossEntropyLoss()),
        "cross-entropy on floats": (Net(1), LABELS[:, :1], nn.CrossEntropyLoss()),
        "squared error": (Net(1, softmax(-1)), LABELS[:, :1], nn.MSELoss()),
        "binary scores": (Net(1, softmax(-1)), LABELS[:, :1], nn.BCEWithLogitsLoss()),
    },
    "loss-broadcasts": {
        "a column against a row": (Net(1), X[:, 0], nn.MSELoss()),
        "a row against a column": (Net(1, lambda x: x.squeeze(1)), X[:, :1], nn.L1Loss()),
        "smooth": (Net(1), X[:, 0], nn.SmoothL1Loss()),
        "by hand": (Net(1), X[:, 0], lambda out, y: ((out - y) ** 2).mean()),
        "by hand, target first": (Net(1), X[:, 0], lambda out, y: (y - out).abs().mean()),
        "beside another loss": (Net(1), X[:, 0], lambda out, y: fn.mse_loss(out, y[:, None]) + (out - y).abs().mean()),
        "images": (Net(25, lambda x: x.reshape(16, 1, 5, 5)), MASK.float(), nn.MSELoss()),
    },
    "output-target-mismatch": {
        "repeated target": (Net(3), X[:, :1], nn.MSELoss()),
        "other width": (Net(3), X[:, :2], nn.MSELoss()),
        "one-hot whole numbers": (Net(4), fn.one_hot(CLASSES, 4), nn.CrossEntropyLoss()),
        "batch sizes": (Net(8, lambda x: x.reshape(-1, 4)), CLASSES, nn.CrossEntropyLoss()),
        "binary": (Net(1), LABELS[:, 0], nn.BCEWithLogitsLoss()),
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in SICK.items() for kind in kinds])
def test_a_wrong_wiring_is_named_and_nothing_else(name: str, kind: str) -> None:
    assert found(*SICK[name][kind]) == [name]


@dataclass
class Answer:
    loss: torch.Tensor | None
    logits: torch.Tensor


class WithLoss(nn.Module):
    """Computes its own loss, as models of a well-known library do."""

    def __init__(self, last=lambda x: x) -> None:
        super().__init__()
        self.net = Net(4, last)

    def forward(self, x, labels=None):
        logits = self.net(x)
        return Answer(None if labels is None else fn.cross_entropy(logits, labels), logits)


def test_a_loss_inside_the_model_is_seen() -> None:
    def step(model, batch):
        return model(batch[0], labels=batch[1]).loss

    assert found(WithLoss(), CLASSES, step=step) == []
    assert found(WithLoss(softmax(1)), CLASSES, step=step) == ["double-softmax"]


def test_every_loss_of_a_multi_task_step_is_seen_with_its_own_value() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 1)

        def forward(self, x):
            return {"class": self.a(x), "value": self.b(x)}

    def loss(out, y):
        return fn.cross_entropy(out["class"], y["class"]) + 0.1 * fn.mse_loss(out["value"], y["value"])

    calls = calls_of(Two(), {"class": CLASSES, "value": X[:, :1]}, loss)[:2]
    assert [c.family for c in calls] == ["cross-entropy", "mse"]
    assert calls[0].value == calls[1].value == pytest.approx(calls[0].returned + 0.1 * calls[1].returned, rel=1e-5)


def test_a_metric_beside_the_loss_is_not_a_loss() -> None:
    def step(model, batch):
        out = model(batch[0])
        with torch.no_grad():
            fn.mse_loss(out, batch[1][:, 0])
        return fn.mse_loss(out, batch[1])

    assert [c.returned is not None for c in calls_of(Net(1), X[:, :1], step=step)] == [True, True]
    assert found(Net(1), X[:, :1], step=step) == []


def test_options_and_the_users_line_are_kept() -> None:
    def loss(out, y):
        return fn.cross_entropy(out, y, torch.ones(4), label_smoothing=0.1, ignore_index=3)

    call = calls_of(Net(4), CLASSES, loss)[0]
    assert call.options == {"label_smoothing": 0.1, "ignore_index": 3, "has_weight": True, "reduction": "mean"}
    assert "label_smoothing=0.1" in call.location.text
    assert [a.role for a in call.arguments] == ["output", "target", "weight"]


def test_the_softmax_that_is_too_much_is_located() -> None:
    def last(x):
        return torch.softmax(x, 1)

    call = calls_of(Net(4, last), CLASSES, nn.CrossEntropyLoss())[0]
    assert "torch.softmax(x, 1)" in call.argument("output").producer_location.text


def test_a_loss_that_raises_is_still_seen() -> None:
    call = calls_of(Net(4), LABELS, nn.BCELoss())[0]
    assert call.failed
    assert call.value is None


def test_not_a_number_is_counted_and_accuses_no_wiring() -> None:
    for model, y, loss in (HEALTHY[n] for n in ("cross-entropy", "multi-label with sigmoid", "log-softmax and NLL")):
        assert found(model, y, loss, None, X * float("nan")) == []
    call = calls_of(Net(4), CLASSES, nn.CrossEntropyLoss(), None, X * float("nan"))[0]
    assert call.argument("output").facts.statistics.nans == 64
    assert call.value is None
    assert call.argument("output").axis_sums == ()

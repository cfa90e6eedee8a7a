"""An exception is told apart: what kind, in which layer, what was expected, what came, what to type."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject, examine
from sleuth.adapters.torch.bench import open_bench
from sleuth.core.observation import Failure, Origin
from sleuth.core.subject import take_apart

HERE = Path(__file__).name
IMAGES = torch.rand(4, 3, 8, 8)
LABELS = torch.tensor([0, 1, 2, 1])


class Net(nn.Module):
    """Calls its parts in a line that the failure must name."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Func(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.ones(()))
        self.function = function

    def forward(self, x):
        return self.function(x) * self.anchor


def failure_of(model, x, y=LABELS, loss=None, **options) -> Failure:
    subject = Subject(model, None, loss or nn.CrossEntropyLoss(), **options)
    with open_bench(subject) as bench:
        found = [o for o in bench.observe(take_apart((x, y)), 0) if isinstance(o, Failure)]
    assert found, "nothing failed"
    return found[0]


FORWARD = {
    "wrong width after flatten": (
        Net(nn.Flatten(), nn.Linear(512, 10)), IMAGES, "shape", "parts.1",
        "Linear(512→10) gets 192 features: make it Linear(192, 10) or flatten from dim 1",
    ),
    "flatten forgotten": (Net(nn.Linear(192, 10)), IMAGES, "shape", "parts.0", "x.flatten(1)"),
    "flattened the batch too": (
        Net(nn.Flatten(0), nn.Linear(192, 10)), IMAGES, "shape", "parts.1", "x.flatten(1) instead of x.flatten()",
    ),
    "channels last": (Net(nn.Conv2d(3, 8, 3)), torch.rand(4, 8, 8, 3), "shape", "parts.0", "x.permute(0, 3, 1, 2)"),
    "channels last, 1d": (Net(nn.Conv1d(3, 8, 3)), torch.rand(4, 20, 3), "shape", "parts.0", "x.permute(0, 2, 1)"),
    "number of channels": (Net(nn.Conv2d(1, 8, 3)), IMAGES, "shape", "parts.0", "Conv2d(3, 8, …)"),
    "channel axis missing": (Net(nn.Conv2d(1, 8, 3)), torch.rand(4, 8, 8), "shape", "parts.0", "x.unsqueeze(1)"),
    "flat images": (Net(nn.Conv2d(3, 8, 3)), torch.rand(4, 192), "shape", "parts.0", "reshape"),
    "batch axis missing": (Net(nn.BatchNorm2d(3)), IMAGES[0], "shape", "parts.0", "x.unsqueeze(0)"),
    "batch axis missing at flatten": (Net(nn.Flatten()), torch.rand(5), "shape", "parts.0", "x.unsqueeze(0)"),
    "double precision": (Net(nn.Linear(6, 3)), torch.rand(4, 6).double(), "dtype", "parts.0", "x.float()"),
    "pixels": (Net(nn.Conv2d(3, 8, 3)), (IMAGES * 255).byte(), "dtype", "parts.0", "x.float() / 255"),
    "whole numbers": (Net(nn.Linear(6, 3)), torch.ones(4, 6).long(), "dtype", "parts.0", "x.float()"),
    "double precision into an LSTM": (Net(nn.LSTM(6, 3)), torch.rand(4, 2, 6).double(), "dtype", "parts.0", "x.float()"),
    "half model": (Net(nn.Linear(6, 3).half()), torch.rand(4, 6), "dtype", "parts.0", "float16"),
    "ids as floats": (Net(nn.Embedding(9, 3)), torch.rand(4, 6), "dtype", "parts.0", "x.long()"),
    "softmax of whole numbers": (Func(lambda x: x.softmax(1)), torch.ones(4, 6).long(), "dtype", None, "x.float()"),
    "another device": (Net(nn.Linear(6, 3)), torch.rand(4, 6, device="meta"), "device", "parts.0", "x.to(device)"),
    "id without a row": (Net(nn.Embedding(9, 3)), torch.tensor([[1, 11]] * 4), "index", "parts.0", "Embedding(12, 3)"),
    "negative id": (Net(nn.Embedding(9, 3)), torch.tensor([[1, -1]] * 4), "index", "parts.0", "id -1 is negative"),
    "index too large": (Func(lambda x: x[7]), torch.rand(4, 6), "index", None, "axis 0 has 4 entries"),
    "batch of one": (Net(nn.Linear(6, 3), nn.BatchNorm1d(3)), torch.rand(1, 6), "batch-of-one", "parts.1", "drop_last=True"),
    "list": (Net(nn.Linear(6, 3)), [torch.rand(6), torch.rand(6)], "type", "parts.0", "torch.stack"),
    "tuple of an LSTM": (Net(nn.LSTM(6, 3), nn.Linear(3, 3)), torch.rand(4, 2, 6), "type", "parts.1", "out, _ = layer(x)"),
    "dict": (Net(nn.Linear(6, 3)), {"a": torch.rand(4, 6), "b": 1}, "type", "parts.0", "'a', 'b'"),
    "adding": (Func(lambda x: x + x[:, :4]), torch.rand(4, 6), "shape", None, "(6 and 4)"),
    "joining": (Func(lambda x: torch.cat([x, x[:, :4]])), torch.rand(4, 6), "shape", None, "torch.cat"),
    "view": (Func(lambda x: x.view(-1, 7)), torch.rand(4, 6), "shape", None, "x.reshape(x.shape[0], -1)"),
    "transposed view": (Func(lambda x: x.t().view(-1)), torch.rand(4, 6), "shape", None, "x.reshape"),
    "product": (Func(lambda x: x @ x), torch.rand(4, 6), "shape", None, "x.transpose(-2, -1)"),
    "LSTM width": (Net(nn.LSTM(5, 3)), torch.rand(4, 2, 6), "shape", "parts.0", "make it LSTM(6, 3)"),
    "LSTM axes": (Net(nn.LSTM(5, 3)), torch.rand(4, 2, 6, 5), "shape", "parts.0", "flatten"),
    "attention width": (
        Net(nn.TransformerEncoderLayer(8, 2)), torch.rand(4, 2, 6), "shape", "parts.0.self_attn", "set d_model to 6",
    ),
    "layer norm": (Net(nn.LayerNorm(5)), torch.rand(4, 6), "shape", "parts.0", "LayerNorm(6)"),
    "batch norm": (Net(nn.BatchNorm1d(5)), torch.rand(4, 6), "shape", "parts.0", "BatchNorm1d(6)"),
    "image too small": (Net(nn.Conv2d(3, 8, 9)), IMAGES, "shape", "parts.0", "larger images"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_a_forward_failure_is_told_apart(name: str) -> None:
    model, x, kind, layer, advice = FORWARD[name]
    failure = failure_of(model, x, split=None)
    assert (failure.phase, failure.kind, failure.layer) == ("forward", kind, layer if layer is not None else failure.layer)
    assert advice in str(failure.advice)
    assert failure.expected
    assert failure.got
    assert failure.location is not None
    assert Path(failure.location.file).name == HERE


OUT = torch.rand(4, 3)
LOSSES = {
    "batch sizes": (nn.CrossEntropyLoss(), (4, 3), LABELS[:2], "shape", "4 rows, the target 2"),
    "a column of classes": (nn.CrossEntropyLoss(), (4, 3), LABELS[:, None], "shape", "target.squeeze(1)"),
    "one-hot whole numbers": (nn.CrossEntropyLoss(), (4, 3), torch.eye(3)[LABELS].long(), "shape", "target.argmax(1)"),
    "other width": (nn.CrossEntropyLoss(), (4, 3), torch.rand(4, 2), "shape", "2 columns, the output 3"),
    "classes last in a sequence": (nn.CrossEntropyLoss(), (4, 7, 3), torch.ones(4, 7).long(), "shape", "output.transpose(1, 2)"),
    "flat targets of a sequence": (nn.CrossEntropyLoss(), (4, 7, 3), torch.ones(28).long(), "shape", "output.reshape(-1, 3)"),
    "mask with a channel": (nn.CrossEntropyLoss(), (4, 3, 8, 8), torch.ones(4, 1, 8, 8).long(), "shape", "target.squeeze(1)"),
    "no class axis": (nn.CrossEntropyLoss(), (4,), LABELS, "shape", "no class axis"),
    "real targets": (nn.CrossEntropyLoss(), (4, 3), LABELS.float(), "dtype", "target.long()"),
    "out of bounds": (nn.CrossEntropyLoss(), (4, 2), LABELS, "index", "3 units"),
    "class weights": (nn.CrossEntropyLoss(weight=torch.ones(2)), (4, 3), LABELS, "value", "3 of them"),
    "a tuple": (nn.CrossEntropyLoss(), "tuple", LABELS, "type", "x[0]"),
    "binary, other shape": (nn.BCEWithLogitsLoss(), (4, 1), torch.ones(4), "shape", "target.unsqueeze(-1)"),
    "binary, other shape, probabilities": (nn.BCELoss(), (4, 1), torch.ones(4), "shape", "target.unsqueeze(-1)"),
    "binary, whole numbers": (nn.BCEWithLogitsLoss(), (4,), torch.ones(4).long(), "dtype", "target.float()"),
    "binary, out of range": (nn.BCELoss(), (4,), torch.ones(4), "value", "BCEWithLogitsLoss"),
    "regression width": (nn.MSELoss(), (4, 3), torch.rand(4, 2), "shape", "2 outputs instead of 3"),
    "hand-written": (lambda out, y: ((out - y) ** 2).mean(), (4, 3), torch.rand(4, 2), "shape", None),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_failure_is_told_apart(name: str) -> None:
    loss, shape, target, kind, advice = LOSSES[name]
    output = (OUT, OUT) if shape == "tuple" else torch.rand(shape) + 2
    model = Func(lambda x: x)
    model.forward = lambda x: output
    failure = failure_of(model, IMAGES, target, loss)
    assert (failure.phase, failure.kind) == ("loss", kind), failure
    assert advice is None or advice in str(failure.advice), failure.advice
    assert advice is None or (failure.expected and failure.got)


def test_a_loss_inside_the_model_fails_as_a_loss() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(6, 3)

        def forward(self, x, labels):
            return {"loss": nn.functional.cross_entropy(self.head(x), labels)}

    failure = failure_of(WithLoss(), torch.rand(4, 6), LABELS[:2], step=lambda model, batch: model(*batch)["loss"])
    assert (failure.phase, failure.kind) == ("loss", "shape")


def test_a_step_that_fails_after_the_model_has_run_fails_in_the_loss() -> None:
    def step(model, batch):
        return (model(batch[0]) - torch.rand(4, 5)).mean()

    failure = failure_of(nn.Linear(6, 3), torch.rand(4, 6), LABELS, step=step)
    assert failure.phase == "loss"
    assert "torch.rand(4, 5)" in failure.location.text


def test_a_step_with_inputs_called_input_and_target_still_fails_in_the_forward() -> None:
    def step(model, batch):
        input, target = batch
        return nn.functional.cross_entropy(model(input), target)

    assert failure_of(nn.Linear(5, 3), torch.rand(4, 6), LABELS, step=step).phase == "forward"


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (nn.CrossEntropyLoss(reduction="none"), "loss.mean()"),
        (lambda out, y: 1.5, "a float"),
        (lambda out, y: None, "a `return` is missing"),
        (lambda out, y: out.detach().mean(), "needs no gradient"),
    ],
)
def test_a_loss_that_backward_cannot_start_from_is_named(loss, text: str) -> None:
    data = [(torch.rand(8, 6), torch.randint(3, (8,))) for _ in range(4)]
    report = examine(nn.Linear(6, 3), data, loss=loss, select=["backward-fails", "forward-fails"], progress=False)
    assert [c.finding.name for c in report.culprits] == ["backward-fails"]
    assert text in report.culprits[0].finding.summary + report.culprits[0].finding.fix


def test_a_graph_that_is_used_twice_is_named() -> None:
    class Carries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.RNN(6, 3, batch_first=True)
            self.state = None

        def forward(self, x):
            out, self.state = self.cell(x, self.state)
            return out[:, -1]

    data = [(torch.rand(8, 5, 6), torch.randint(3, (8,))) for _ in range(4)]
    report = examine(Carries(), data, loss=nn.CrossEntropyLoss(), select=["backward-fails"], progress=False)
    assert "hidden.detach()" in report.culprits[0].finding.fix


def test_the_line_that_changes_a_tensor_in_place_is_named() -> None:
    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            h = torch.tanh(self.one(x))
            scaled = h * 2
            h[:, 0] = 0
            return self.two(h + scaled)

    data = [(torch.rand(8, 6), torch.randint(3, (8,))) for _ in range(4)]
    report = examine(Changes(), data, loss=nn.CrossEntropyLoss(), select=["backward-fails"], progress=False)
    assert report.culprits[0].finding.location.text == "h[:, 0] = 0"


def test_relu_in_place_after_a_linear_layer_is_no_failure() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))
    data = [(torch.rand(8, 6), torch.randint(3, (8,))) for _ in range(4)]
    report = examine(model, data, loss=nn.CrossEntropyLoss(), select=["backward-fails", "forward-fails"], progress=False)
    assert not report.findings
    assert set(report.clear) == {"backward-fails", "forward-fails"}


def test_a_loader_that_raises_is_reported_with_the_line() -> None:
    class Broken(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 80

        def __getitem__(self, i):
            if i == 50:
                raise ValueError("sample 50 is broken")
            return torch.rand(6), i % 3

    report = examine(nn.Linear(6, 3), Broken(), loss=nn.CrossEntropyLoss(), select=["forward-fails"], progress=False)
    finding = report.culprits[0].finding
    assert "sample 50 is broken" in finding.summary
    assert finding.location is not None
    assert Path(finding.location.file).name == HERE


def origin_of(function, x) -> Origin | None:
    with open_bench(Subject(Func(function), None, lambda out, y: out.mean())) as bench:
        found = [o for o in bench.observe(take_apart((x, torch.ones(4))), 0) if isinstance(o, Origin)]
    return found[0] if found else None


ZEROS = torch.zeros(4, 6)
ORIGINS = {
    "log": lambda x: torch.log(x) * 2,
    "div": lambda x: x / x.sum(),
    "log_": lambda x: (x + 0).log_(),
    "exp": lambda x: torch.exp(x + 1000) - torch.exp(x + 999),
    "softmax": lambda x: x.masked_fill(x == 0, float("-inf")).softmax(1),
    "__pow__": lambda x: (x - 1) ** 0.5,
}


@pytest.mark.parametrize("operation", ORIGINS)
def test_the_operation_that_makes_nan_or_inf_is_named(operation: str) -> None:
    origin = origin_of(ORIGINS[operation], ZEROS)
    assert origin is not None
    assert origin.operation.strip("_") == operation.strip("_")
    assert origin.location is not None


def attention(x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.T
    mask = torch.triu(torch.full((4, 4), float("-inf")), diagonal=1)
    return (scores + mask).softmax(1) @ x


def masked_scores(x: torch.Tensor) -> torch.Tensor:
    mask = np.array([False, False, False, False, False, True])
    return x.masked_fill(torch.as_tensor(mask), float("-inf"))


def test_a_causal_mask_of_minus_infinity_is_innocent() -> None:
    assert origin_of(attention, torch.rand(4, 6)) is None
    data = [(torch.rand(4, 6), torch.randint(5, (4,))) for _ in range(4)]
    for function in (attention, masked_scores):
        report = examine(Func(function), data, loss=nn.CrossEntropyLoss(), select=["output-not-finite"], progress=False)
        assert report.clear == ("output-not-finite",), report.to_text()


def test_inputs_that_are_not_finite_are_not_held_against_the_model() -> None:
    data = [(torch.full((4, 6), float("nan")), torch.randint(3, (4,))) for _ in range(4)]
    report = examine(nn.Linear(6, 3), data, loss=nn.CrossEntropyLoss(), select=["output-not-finite"], progress=False)
    assert "output-not-finite" in report.not_examined


def test_weights_that_hold_nan_are_named() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    model[2].weight.data[0, 0] = float("nan")
    data = [(torch.rand(4, 6), torch.randint(3, (4,))) for _ in range(4)]
    report = examine(model, data, loss=nn.CrossEntropyLoss(), select=["output-not-finite"], progress=False)
    assert report.culprits[0].finding.where == "2.weight"

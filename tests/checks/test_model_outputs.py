"""Outputs that are the same for every sample, and models whose size does not fit the data."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from sleuth.core.subject import Subject
from tests.checks.looking import look, training
from tests.material import cancer, diabetes, digit_images, digits, wine


class Net(nn.Module):
    def __init__(self, run: Callable[..., Tensor], **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def zeroed(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(*widths: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return layers[:-1]


class ZeroBranches(nn.Module):
    """Each branch of the residual net and the head start at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(64, 64)
        self.branches = nn.ModuleList([nn.Sequential(nn.Linear(64, 64), nn.ReLU(), zeroed(nn.Linear(64, 64))) for _ in range(4)])
        self.head = zeroed(nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        for branch in self.branches:
            h = h + branch(h)
        return self.head(h)


def raw_regression() -> Subject:
    """Targets around 150 ± 77, and a last bias that starts there: the outputs are nearly equal on purpose."""
    x, y = diabetes()
    head = nn.Linear(32, 1)
    nn.init.normal_(head.weight, std=1e-3)
    nn.init.constant_(head.bias, 150.0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), head)
    return training(model, nn.MSELoss(), (x, (y * 77 + 150).astype(np.float32)))


def at_rate_zero() -> Subject:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), zeroed(nn.Linear(64, 10)))
    return training(model, optimizer=torch.optim.Adam(model.parameters(), lr=0.0))


def distance(model: nn.Module, batch: list[Tensor]) -> Tensor:
    code = model(batch[0])
    return F.cross_entropy(code @ code.T, torch.arange(len(code)))


HEALTHY = {
    "a last layer that starts at zero": lambda: training(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), zeroed(nn.Linear(64, 10)))),
    "branches that start at zero": lambda: training(ZeroBranches()),
    "a rate of zero": at_rate_zero,
    "a bias at the mean of the targets": raw_regression,
    "eight layers as torch draws them": lambda: training(nn.Sequential(*mlp(64, 64, 64, 64, 64, 64, 64, 64, 10))),
    "half precision": lambda: training(
        nn.Sequential(nn.Linear(64, 64), nn.GELU(), zeroed(nn.Linear(64, 10))).bfloat16(),
        data=(torch.as_tensor(digits()[0]).bfloat16(), digits()[1]),
    ),
    "a sigmoid at the end": lambda: training(
        nn.Sequential(*mlp(30, 32, 1), nn.Sigmoid()), nn.BCELoss(), (cancer()[0], cancer()[1][:, None].astype(np.float32))
    ),
    "a second output that is one number": lambda: training(
        Net(lambda m, x: (m.l(x), torch.full((len(x),), 0.5)), l=nn.Linear(64, 10)), lambda out, y: F.cross_entropy(out[0], y)
    ),
    "a step of one's own": lambda: training(nn.Sequential(*mlp(64, 64, 16)), data=(digits()[0],), step=distance),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_outputs_that_differ_or_soon_will_are_not_accused(name: str) -> None:
    found = look(HEALTHY[name](), "collapsed-output")
    assert not found.findings
    assert not found.not_examined


def test_where_all_targets_are_the_same_so_may_be_the_outputs() -> None:
    x, _ = digits()
    subject = training(nn.Sequential(nn.Linear(64, 8), nn.ReLU(), zeroed(nn.Linear(8, 10))), data=(x, np.zeros(len(x), np.int64)))
    found = look(subject, "collapsed-output")
    assert not found.findings
    assert "same target" in found.not_examined["collapsed-output"]


SICK = {
    "an instance norm before a global average": lambda: training(
        nn.Sequential(nn.Conv2d(1, 16, 3), nn.InstanceNorm2d(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
        data=digit_images(),
    ),
    "features that are scaled away": lambda: training(
        Net(lambda m, x: m.head(F.relu(m.body(x)) * 1e-6), body=nn.Linear(64, 64), head=nn.Linear(64, 10))
    ),
    "scores that are all but zero": lambda: training(
        Net(lambda m, x: m.head(F.relu(m.body(x)) * 1e-6), body=nn.Linear(64, 64), head=nn.Linear(64, 10, bias=False))
    ),
    "an answer that is clamped": lambda: training(
        Net(lambda m, x: m.body(x).clamp(5.0, 5.001), body=nn.Sequential(*mlp(10, 32, 1))), nn.MSELoss(), diabetes()
    ),
}


@pytest.mark.parametrize("name", SICK)
def test_the_same_output_for_all_is_found(name: str) -> None:
    assert look(SICK[name](), "collapsed-output").names == ["collapsed-output"]


def wines(model: nn.Module, **options: object) -> Subject:
    x, y = wine()
    return training(model, data=(x[::4], y[::4]), **options)


def wide() -> nn.Sequential:
    return nn.Sequential(*mlp(13, 1024, 1024, 3))


def trained() -> nn.Module:
    model = wide()
    x, y = map(torch.as_tensor, wine())
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(30):
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model


def test_a_million_fresh_parameters_for_a_few_samples_are_noted() -> None:
    finding = look(wines(wide()), "capacity-mismatch").one()
    assert finding.severity.name == "HINT"
    assert finding.numbers["samples"] == 45


def test_weights_that_were_trained_before_are_not_too_many() -> None:
    assert not look(wines(trained()), "capacity-mismatch").findings


def test_frozen_weights_are_not_counted() -> None:
    model = wide()
    for layer in list(model)[:-1]:
        layer.requires_grad_(False)
    assert not look(wines(model), "capacity-mismatch").findings


def test_tables_of_embeddings_are_not_counted() -> None:
    model = Net(
        lambda m, x: m.head(m.table((x * 9).long()).mean(1).relu()), table=nn.Embedding(100_000, 32), head=nn.Linear(32, 10)
    )
    x, y = digits()
    assert not look(training(model, data=(x[:64], y[:64])), "capacity-mismatch").findings


def test_each_pixel_to_predict_counts() -> None:
    x, _ = digits()
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64))
    assert not look(training(model, nn.MSELoss(), (x[:64], x[:64])), "capacity-mismatch").findings


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        x, y = map(torch.as_tensor, wine())
        while True:
            yield from zip(x, y, strict=True)


def test_of_a_stream_without_end_nobody_knows_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.reading.MOST_UNSIZED_BATCHES", 4)
    model = wide()
    subject = Subject(model, DataLoader(Stream(), 16), nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters()))
    found = look(subject, "capacity-mismatch")
    assert not found.findings
    assert "length" in found.not_examined["capacity-mismatch"]


def test_ten_classes_through_two_units_are_noted() -> None:
    finding = look(training(nn.Sequential(*mlp(64, 32, 2, 10))), "capacity-mismatch").one()
    assert finding.numbers["width"] == 2
    assert finding.where == "4"


ROOMY = {
    "three classes through two units": lambda: wines(nn.Sequential(*mlp(13, 2, 3))),
    "two classes through one unit": lambda: training(nn.Sequential(*mlp(30, 1, 2)), data=cancer()),
    "ten classes through four": lambda: training(nn.Sequential(*mlp(64, 4, 10))),
    "a code of one number": lambda: training(nn.Sequential(*mlp(64, 1, 64)), nn.MSELoss(), (digits()[0], digits()[0])),
    "inputs that have no more": lambda: training(nn.Sequential(*mlp(2, 2, 10)), data=(digits()[0][:, 20:22], digits()[1])),
    "another way around": lambda: training(
        Net(
            lambda m, x: m.head(x) + m.out(F.relu(m.neck(x))), head=nn.Linear(64, 10), neck=nn.Linear(64, 2), out=nn.Linear(2, 10)
        )
    ),
    "a narrow convolution": lambda: training(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10)), data=digit_images()
    ),
    "a linear model": lambda: training(nn.Linear(64, 10)),
}


@pytest.mark.parametrize("name", ROOMY)
def test_layers_that_are_wide_enough_are_not_accused(name: str) -> None:
    assert not look(ROOMY[name](), "capacity-mismatch").findings


def test_a_loader_of_single_samples_is_enough_to_compare_outputs() -> None:
    x, y = (torch.as_tensor(a[:64]) for a in digits())
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loader = DataLoader(TensorDataset(x, y), batch_size=1)
    subject = Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters()))
    found = look(subject, "collapsed-output")
    assert not found.findings
    assert not found.not_examined

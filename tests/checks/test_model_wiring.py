"""unregistered-layers and frozen-parameters."""

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence, Severity
from tests.checks.looking import WIRING, look, training
from tests.material import digits


class Holder:
    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer


class Keeping(nn.Module):
    """A hidden layer kept in some way; `used` finds it again."""

    def __init__(self, keep, used) -> None:
        super().__init__()
        self.kept = keep(nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)
        self._used = used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self._used(self.kept)(x)))


STRAYS = {
    "list": (lambda layer: [layer], lambda kept: kept[0]),
    "tuple": (lambda layer: (layer,), lambda kept: kept[0]),
    "dict": (lambda layer: {"a": layer}, lambda kept: kept["a"]),
    "object": (Holder, lambda kept: kept.layer),
    "nested": (lambda layer: {"a": [Holder(layer)]}, lambda kept: kept["a"][0].layer),
}


@pytest.mark.parametrize("how", STRAYS)
def test_a_layer_is_found_wherever_it_hides_with_the_line_that_put_it_there(how: str) -> None:
    found = look(training(Keeping(*STRAYS[how])), "unregistered-layers").one()
    assert found.where == "kept"
    assert found.location is not None
    assert Path(found.location.file) == Path(__file__)
    assert "self.kept = keep" in found.location.text
    assert found.confidence is (Confidence.LIKELY if how == "object" else Confidence.CERTAIN)


def test_a_plain_tensor_that_wants_a_gradient_is_found() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.ones(64, requires_grad=True)
            self.head = nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x * self.scale)

    assert "nn.Parameter" in look(training(Scaled()), "unregistered-layers").one().fix


def test_layers_outside_the_model_are_fine_when_frozen_registered_as_well_or_optimised() -> None:
    frozen = Keeping(lambda layer: [layer.requires_grad_(False)], lambda kept: kept[0])
    assert not look(training(frozen), *WIRING).findings
    both = Keeping(*STRAYS["list"])
    both.add_module("also", both.kept[0])
    assert not look(training(both), *WIRING).findings
    held = Keeping(*STRAYS["list"])
    optimiser = torch.optim.Adam([*held.parameters(), *held.kept[0].parameters()])
    assert not look(training(held, optimizer=optimiser), *WIRING).findings


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))


def test_a_frozen_last_layer_is_accused_while_others_learn() -> None:
    model = mlp()
    model[4].requires_grad_(False)
    found = look(training(model), "frozen-parameters").one()
    assert found.where == "4.weight"
    assert found.severity is Severity.WARNING


def test_a_frozen_layer_in_the_middle_is_worth_a_hint() -> None:
    model = mlp()
    model[2].requires_grad_(False)
    assert look(training(model), "frozen-parameters").one().severity is Severity.HINT


class Moco(nn.Module):
    """A frozen momentum copy, run without a graph."""

    def __init__(self, teacher_first: bool = False) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.teacher_first = teacher_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = None if self.teacher_first else self.student(x)
        with torch.no_grad():
            self.teacher(x)
        return self.student(x) if scores is None else scores


class Distilled(nn.Module):
    """Random network distillation: a small net learns what a larger one says that nobody ever trains."""

    def __init__(self) -> None:
        super().__init__()
        self.target = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16)).requires_grad_(False)
        self.predictor = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.target(x) - self.predictor(x)


class Adapted(nn.Module):
    """A frozen base with small adapters that learn, and a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(64) * 0.02)
        self.base = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)]).requires_grad_(False)
        self.down = nn.ModuleList([nn.Linear(64, 4), nn.Linear(64, 4)])
        self.up = nn.ModuleList([nn.Linear(4, 64), nn.Linear(4, 64)])
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.prompt
        for base, down, up in zip(self.base, self.down, self.up, strict=True):
            x = torch.relu(base(x) + up(down(x)))
        return self.head(x)


def frozen(model: nn.Module, *parts: int) -> nn.Module:
    for part in parts:
        model[part].requires_grad_(False)
    return model


def trained(model: nn.Module, steps: int = 20, lr: float = 0.05) -> nn.Module:
    """On other digits, as a trunk that deserves to be frozen was."""
    x, y = (torch.as_tensor(a) for a in digits())
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[y < 5]), y[y < 5]).backward()
        optimiser.step()
    return model


def normed(start) -> nn.Sequential:
    """Convolutions with batch norm, started by hand; the last layer is the head."""
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(),
        nn.Linear(16, 10),
    )  # fmt: skip
    for module in model:
        if isinstance(module, nn.Conv2d):
            start(module.weight)
    return model


def no_trunk_of(size: float) -> nn.Sequential:
    """A deep reservoir: random on purpose, and scaled for it."""
    model = mlp()
    with torch.no_grad():
        model[0].weight.mul_(size)
        model[2].weight.mul_(size)
    return frozen(model, 0, 2)


def only_biases(model: nn.Module) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return model


def mlp_on(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 10))


def frozen_norm() -> nn.Module:
    return frozen(nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)), 1)


DELIBERATE = {
    "trunk": lambda: frozen(trained(mlp()), 0, 2),
    "trunk after three small steps": lambda: frozen(trained(mlp(), steps=3, lr=0.01), 0, 2),
    "trunk with norms": lambda: frozen(trained(normed(nn.init.kaiming_normal_)), 1, 2, 4, 5),
    "half a fresh net": lambda: frozen(
        nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), mlp_on(16)), 0, 2
    ),
    "random features": lambda: frozen(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)), 0),
    "deep reservoir": lambda: no_trunk_of(1.3),
    "first layer": lambda: frozen(mlp(), 0),
    "momentum teacher": Moco,
    "momentum teacher that runs first": lambda: Moco(teacher_first=True),
    "random target": Distilled,
    "adapters": Adapted,
    "biases only": lambda: only_biases(mlp()),
    "norm": frozen_norm,
    "input and output layers only": lambda: frozen(
        nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        ),
        2,
        4,
    ),
    "frozen decoder": lambda: frozen(mlp(), 2, 4),
}


@pytest.mark.parametrize("name", DELIBERATE)
def test_freezing_that_is_somebodys_plan_is_not_accused(name: str) -> None:
    assert not look(training(DELIBERATE[name]()), *WIRING).findings


UNTRAINED = {
    "default": (lambda: frozen(mlp(), 0, 2), "end exactly where a fresh draw ends"),
    "glorot": (lambda: frozen(started(mlp(), nn.init.xavier_uniform_), 0, 2), "end exactly where a fresh draw ends"),
    "norms": (lambda: frozen(normed(nn.init.kaiming_normal_), 1, 2, 4, 5), "scale by exactly one"),
    "zero biases": (lambda: frozen(started(mlp(), nn.init.kaiming_normal_), 0, 2), "biases are still exactly zero"),
    "half precision": (lambda: frozen(mlp(), 0, 2).bfloat16(), "end exactly where a fresh draw ends"),
}


def started(model: nn.Sequential, start) -> nn.Sequential:
    for module in model:
        if isinstance(module, nn.Linear):
            start(module.weight)
            nn.init.zeros_(module.bias)
    return model


@pytest.mark.parametrize("name", UNTRAINED)
def test_a_frozen_trunk_that_nobody_trained_is_accused_with_what_shows_it(name: str) -> None:
    build, mark = UNTRAINED[name]
    data = digits()
    if "half" in name:
        data = (torch.as_tensor(data[0]).bfloat16(), data[1])
    found = look(training(build(), data=data), "frozen-parameters").one()
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.LIKELY
    assert mark in found.summary
    assert "pretrained weights" in found.fix

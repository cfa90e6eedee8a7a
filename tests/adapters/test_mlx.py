"""What is particular to MLX: lazy arrays, frozen parameters, shared modules, its float64, its graph that nobody shows."""

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten

from sleuth import Subject
from sleuth.adapters.mlx import ADAPTER, float64
from sleuth.adapters.mlx.state import random_key
from sleuth.core.errors import Unsupported
from sleuth.core.subject import take_apart
from sleuth.testing.conformance import Rule, rules
from tests.kits.mlx_kit import MlxKit

LINES = Path(__file__).read_text().splitlines()
X = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)
Y = np.arange(16) % 3


def line_with(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def entropy(scores: mx.array, target: mx.array) -> mx.array:
    return nn.losses.cross_entropy(scores, target, reduction="mean")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.last = nn.Linear(8, 3)

    def __call__(self, x: mx.array) -> mx.array:
        return self.last(nn.relu(self.first(x)))


class Cut(Net):
    def __call__(self, x: mx.array) -> mx.array:
        h = mx.stop_gradient(self.first(x))  # here it is cut
        return self.last(h)


class Unused(Net):
    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Linear(2, 2)


class Logged(Net):
    def __call__(self, x: mx.array) -> mx.array:
        h = nn.relu(self.first(x))
        h = mx.log(h)  # of zero
        return self.last(h)


class Rooted(Net):
    def __call__(self, x: mx.array) -> mx.array:
        h = mx.sqrt(nn.relu(self.first(x)))  # has no slope at zero
        return self.last(h)


def subject(model: nn.Module, optimiser: optim.Optimizer | None = None) -> Subject:
    return Subject(model, [(X, Y)], entropy, optimiser or optim.SGD(0.1))


@pytest.mark.parametrize("rule", [r for r in rules() if r.applies(ADAPTER)], ids=lambda rule: rule.name)
def test_the_adapter_keeps_the_rule(rule: Rule) -> None:
    rule.run(ADAPTER, MlxKit())


def test_adam_says_that_it_leaves_out_the_bias_correction() -> None:
    options = ADAPTER.settings(subject(Net(), optim.Adam(1e-3))).optimiser_options
    assert options["bias_correction"] is False
    assert options["betas"] == (0.9, 0.999)


def test_layers_in_a_tuple_are_strays_and_those_behind_an_underscore_are_meant() -> None:
    model = Net()
    model.more = (nn.Linear(2, 2), nn.Linear(2, 3))
    model._teacher = nn.Linear(4, 4)
    found = ADAPTER.architecture(subject(model))
    assert [(s.path, s.holder, s.parameters) for s in found.strays or ()] == [("more", "tuple", 15)]
    assert all("teacher" not in p.path for p in found.parameters)


def test_a_frozen_layer_is_told_with_the_line_that_freezes() -> None:
    model = Net()
    model.first.freeze()
    found = ADAPTER.architecture(subject(model))
    assert {p.path: p.trainable for p in found.parameters} == {
        "first.weight": False, "first.bias": False, "last.weight": True, "last.bias": True
    }  # fmt: skip
    assert found.frozen_at is not None
    assert found.frozen_at.line == line_with("model.first." + "freeze()")


def test_a_module_in_two_places_is_one_and_has_its_gradient() -> None:
    model = nn.Sequential(shared := nn.Linear(6, 6), nn.ReLU(), shared, nn.Linear(6, 3))
    with ADAPTER.bench(subject(model)) as bench:
        assert len(bench.paths()) == 4
        assert all(g is not None and np.any(np.array(g)) for g in bench.gradients(take_apart((X, Y))).by_path.values())


def test_what_the_loss_does_not_reach_is_told_and_where_it_is_cut() -> None:
    with ADAPTER.bench(subject(Cut())) as bench:
        found = ADAPTER.connection(bench, take_apart((X, Y)))
        assert found.without_gradient == ("first.weight", "first.bias")
        (cut,) = found.cuts
        assert (cut.operation, cut.location.line) == ("detach", line_with("here it " + "is cut"))
    with ADAPTER.bench(subject(Unused())) as bench:
        found = ADAPTER.connection(bench, take_apart((X, Y)))
        assert (found.without_gradient, found.unused_layers) == (("idle.weight", "idle.bias"), ("idle",))


@pytest.mark.parametrize(
    ("kind", "operation", "direction", "line"),
    [(Logged, "log", "forward", "of " + "zero"), (Rooted, "sqrt", "backward", "has no " + "slope at zero")],
)
def test_the_operation_that_makes_a_nan_is_named_with_its_line(kind: type, operation: str, direction: str, line: str) -> None:
    with ADAPTER.bench(subject(kind())) as bench:
        found = ADAPTER.origin(bench, take_apart((X, Y)))
        assert found is not None
        assert (found.operation, found.direction, found.location.line) == (operation, direction, line_with(line))


def test_in_float64_functions_are_as_exact_as_numpys() -> None:
    x = np.linspace(-5, 5, 101)
    a = mx.array(x, mx.float64)
    with float64.in_earnest():
        pairs = [(mx.exp(a), np.exp(x)), (mx.sigmoid(a), 1 / (1 + np.exp(-x))), (mx.sin(a), np.sin(x)), (mx.cos(a), np.cos(x))]
        pairs += [(mx.logsumexp(a), np.log(np.exp(x).sum())), (mx.softmax(a), np.exp(x) / np.exp(x).sum())]
        assert all(np.allclose(np.array(one), other, rtol=1e-12, atol=1e-14) for one, other in pairs)
    assert not np.allclose(np.array(mx.exp(a)), np.exp(x), rtol=1e-12), "MLX has become exact: wide.py can go"


def test_where_mlx_has_no_float64_in_earnest_that_is_said() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 3, 3))
    images = np.zeros((2, 5, 5, 1), np.float32)
    given = Subject(model, [(images, Y[:2])], lambda o, t: entropy(o.reshape(2, 3), t), optim.SGD(0.1))
    with ADAPTER.bench(given) as bench, pytest.raises(Unsupported, match="Convolution in float64"):
        bench.double().loss(take_apart((images, Y[:2])))


def test_looking_leaves_model_optimiser_and_dice_as_they_were() -> None:
    model, optimiser = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm(8), nn.Dropout(0.5), nn.Linear(8, 3)), optim.Adam(0.01)
    before, key = [np.array(a) for _, a in tree_flatten(model.parameters())], random_key()
    given, batch = subject(model, optimiser), take_apart((X, Y))
    with ADAPTER.preserve(given), ADAPTER.bench(given) as bench:
        for _ in range(3):
            bench.step(batch)
        list(bench.observe(batch, 0))
        ADAPTER.connection(bench, batch)
        ADAPTER.flow(bench, batch)
        ADAPTER.origin(bench, batch)
        bench.double().gradients(batch)
    assert random_key() == key
    assert all(np.array_equal(one, np.array(a)) for one, (_, a) in zip(before, tree_flatten(model.parameters()), strict=True))
    assert optimiser.state["step"].item() == 0
    assert type(mx.exp).__name__ == type(mx.value_and_grad).__name__ == "nb_func", "a function was left replaced"

"""unregistered-layers: wherever layers hide, and the many places where they may be."""

import copy
import functools
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as fn
from torch.nn.utils import prune

from sleuth.core.stage import Confidence, Severity
from tests.checks.looking import look, training

OUTSIDE = nn.Linear(64, 32)


class Slotted:
    __slots__ = ("layer",)

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer


class Model(nn.Module):
    """A hidden layer that each of the classes below keeps or makes in its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(32, 10)
        self.build()

    def build(self) -> None:
        self.own = nn.Linear(64, 32)

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        return self.own(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(x)))


class InSet(Model):
    def build(self) -> None:
        self.kept = {nn.Linear(64, 32)}

    def hidden(self, x):
        return next(iter(self.kept))(x)


class InClosure(Model):
    def build(self) -> None:
        layer = nn.Linear(64, 32)
        self.kept = lambda x: layer(x)

    def hidden(self, x):
        return self.kept(x)


class InPartial(Model):
    def build(self) -> None:
        self.kept = functools.partial(fn.linear, weight=nn.Parameter(torch.randn(32, 64) / 8))

    def hidden(self, x):
        return self.kept(x)


class InMethod(Model):
    def build(self) -> None:
        self.kept = nn.Linear(64, 32).forward

    def hidden(self, x):
        return self.kept(x)


class InSlots(Model):
    def build(self) -> None:
        self.kept = Slotted(nn.Linear(64, 32))

    def hidden(self, x):
        return self.kept.layer(x)


class Deep(Model):
    def build(self) -> None:
        self.kept = Slotted({"a": [{"b": (nn.Linear(64, 32),)}]})

    def hidden(self, x):
        return self.kept.layer["a"][0]["b"][0](x)


@pytest.mark.parametrize("kind", [InSet, InClosure, InPartial, InMethod, InSlots, Deep])
def test_a_layer_is_found_wherever_it_hides(kind: type[Model]) -> None:
    found = look(training(kind()), "unregistered-layers").one()
    assert found.where == "kept"
    assert found.severity is Severity.ERROR
    assert found.location is not None
    assert "self.kept =" in found.location.text


class Bare(Model):
    def build(self) -> None:
        pass


class OfClass(Bare):
    layers = (nn.Linear(64, 32),)

    def hidden(self, x):
        return self.layers[0](x)


class OfFile(Bare):
    def hidden(self, x):
        return OUTSIDE(x)


@pytest.mark.parametrize(("kind", "line"), [(OfClass, "self.layers[0](x)"), (OfFile, "OUTSIDE(x)")])
def test_layers_of_a_class_or_a_file_are_met_at_work(kind: type[Model], line: str) -> None:
    found = look(training(kind()), "unregistered-layers").one()
    assert "2,080 trainable numbers that the model and the optimiser do not know" in found.summary
    assert found.confidence is Confidence.LIKELY
    assert line in found.location.text


class LayerInForward(Bare):
    def hidden(self, x):
        layer = nn.Linear(64, 32)
        return layer(x)


class ParameterInForward(Bare):
    def hidden(self, x):
        return fn.linear(x, nn.Parameter(torch.randn(32, 64) / 8))


class TensorInForward(Bare):
    def hidden(self, x):
        return x @ torch.randn(64, 32, requires_grad=True) / 8


class InnerInForward(Model):
    def build(self) -> None:
        self.block = LayerInBlock()

    def hidden(self, x):
        return self.block(x)


class LayerInBlock(nn.Module):
    def forward(self, x):
        return nn.Linear(64, 32)(x)


@pytest.mark.parametrize("kind", [LayerInForward, ParameterInForward, TensorInForward, InnerInForward])
def test_layers_made_in_forward_are_named_with_the_line(kind: type[Model]) -> None:
    found = look(training(kind()), "unregistered-layers").one()
    assert found.severity is Severity.ERROR
    assert found.confidence is Confidence.CERTAIN
    assert "anew at every call" in found.summary
    assert "__init__" in found.fix
    assert Path(found.location.file) == Path(__file__)
    assert any(word in found.location.text for word in ("nn.Linear(64, 32)", "nn.Parameter(", "torch.randn("))
    assert found.where == ("block" if kind is InnerInForward else None)


def test_normalisation_made_in_forward_is_worth_a_warning() -> None:
    class Normalised(Model):
        def hidden(self, x):
            return nn.BatchNorm1d(32)(self.own(x))

    found = look(training(Normalised()), "unregistered-layers").one()
    assert found.severity is Severity.WARNING
    assert "nn.BatchNorm1d(32)" in found.location.text


def test_a_layer_registered_at_the_first_call_is_unknown_to_the_optimiser() -> None:
    class Late(Model):
        def build(self) -> None:
            pass

        def hidden(self, x):
            if not hasattr(self, "own"):
                self.own = nn.Linear(64, 32)
            return self.own(x)

    found = look(training(Late()), "unregistered-layers").one()
    assert found.where == "own"
    assert "first call" in found.summary


class Plain(Model):
    def hidden(self, x):
        return nn.Dropout(0.1)(nn.ReLU()(nn.LayerNorm(32, elementwise_affine=False)(self.own(x))))


class WeightNormed(Model):
    def build(self) -> None:
        self.own = nn.utils.parametrizations.weight_norm(nn.Linear(64, 32))


class SpectrallyNormed(Model):
    def build(self) -> None:
        self.own = nn.utils.spectral_norm(nn.Linear(64, 32))


class Pruned(Model):
    def build(self) -> None:
        self.own = prune.l1_unstructured(nn.Linear(64, 32), "weight", 0.3)


class Listed(Model):
    def build(self) -> None:
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(64, 32) / 8)])
        self.layers = nn.ModuleDict({"a": nn.Linear(32, 32)})
        self.register_buffer("scale", torch.ones(64))

    def hidden(self, x):
        return self.layers["a"](x * self.scale @ self.weights[0])


class Shared(Model):
    def build(self) -> None:
        self.own = nn.Linear(64, 32)
        self.alias, self.call = [self.own], self.own.forward

    def hidden(self, x):
        return self.alias[0](x) + self.call(x)


class TargetNetwork(Model):
    def build(self) -> None:
        self.own = nn.Linear(64, 32)
        self.target = [copy.deepcopy(self.own).requires_grad_(False)]

    def hidden(self, x):
        return self.own(x) + 0.01 * self.target[0](x)


class LiveTargetNetwork(Model):
    """Not frozen, but never asked for a gradient."""

    def build(self) -> None:
        self.own = nn.Linear(64, 32)
        self.target = [copy.deepcopy(self.own)]

    def hidden(self, x):
        with torch.no_grad():
            wanted = self.target[0](x)
        return self.own(x) + 0.01 * wanted


class Critic(Model):
    """Held for another to train: forward does not use it."""

    def build(self) -> None:
        self.own = nn.Linear(64, 32)
        self.critics = [nn.Linear(32, 1)]


class FirstState(Model):
    """The hidden state of old tutorials wants a gradient for no reason."""

    def build(self) -> None:
        self.rnn = nn.GRU(8, 32, batch_first=True)

    def hidden(self, x):
        return self.rnn(x.reshape(-1, 8, 8), torch.zeros(1, len(x), 32).requires_grad_())[0][:, -1]


class InputGradient(Model):
    def hidden(self, x):
        return self.own(x.detach().requires_grad_())


class InputGradientInPlace(Model):
    def hidden(self, x):
        return self.own(x.requires_grad_())


class FastWeights(Model):
    """One step of gradient descent of its own, as in meta-learning; the first-order kind cuts the graph."""

    def hidden(self, x):
        fast = (0.99 * self.own.weight).detach().requires_grad_()
        return self.own(x) + 0.1 * fn.linear(x, fast)


class Remembering(Model):
    def hidden(self, x):
        self.cache = {"hidden": self.own(x)}
        return self.cache["hidden"]


HEALTHY = [
    Model, Plain, WeightNormed, SpectrallyNormed, Pruned, Listed, Shared, TargetNetwork, LiveTargetNetwork, Critic, FirstState,
    InputGradient, InputGradientInPlace, FastWeights, Remembering,
]  # fmt: skip


@pytest.mark.parametrize("kind", HEALTHY)
def test_what_is_kept_or_made_on_purpose_is_not_accused(kind: type[Model]) -> None:
    assert not look(training(kind()), "unregistered-layers").findings


def test_a_network_that_the_loss_compares_with_is_not_the_models() -> None:
    class Perceptual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Linear(10, 16)

        def forward(self, out, y):
            wanted = nn.functional.one_hot(y, 10).float()
            return (self.features(out) - self.features(wanted)).pow(2).mean() + nn.functional.cross_entropy(out, y)

    model = Model()
    perceptual = Perceptual()
    model.judges = [perceptual]
    assert not look(training(model, perceptual), "unregistered-layers").findings
    assert not look(training(Model(), lambda out, y: perceptual(out, y)), "unregistered-layers").findings

"""What is read off the flow of one forward pass: linear layers in a row, dropout and norms written as functions."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import Conv2d, Linear
from torch.nn import functional as F  # noqa: N812

from sleuth.core.subject import Subject
from tests.checks.looking import look, training
from tests.kits.numpy_kit import NumpyKit
from tests.kits.numpy_layers import Linear as HandLinear
from tests.kits.numpy_layers import Sequential as HandSequential
from tests.material import digit_images, digits


class Net(nn.Module):
    """Parts by name, and what to do with them."""

    def __init__(self, run: Callable[..., Tensor], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def linear(*widths: int) -> dict[str, nn.Module]:
    return {f"l{i}": Linear(a, b) for i, (a, b) in enumerate(pairwise(widths))}


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape) / 8)


def on_images(model: nn.Module) -> Subject:
    return training(model, data=digit_images())


class OwnTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.tanh(x))
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1 - ctx.saved_tensors[0] ** 2)


def attention(m: Net, x: Tensor) -> Tensor:
    q, k, v = m.qkv(m.embed(x.view(-1, 8, 8))).chunk(3, -1)
    return m.head(m.out((q @ k.mT / 4).softmax(-1) @ v)[:, 0])


def coupling(m: Net, x: Tensor) -> Tensor:
    one, other = (x @ m.mix).chunk(2, -1)
    return m.head(torch.cat([one, other * torch.exp(m.scale(one).tanh()) + m.shift(one)], 1))


def two_axes(m: Net, x: Tensor) -> Tensor:
    over_rows = m.l0(x.view(-1, 8, 8).mT)
    return m.head(m.l1(over_rows.mT).flatten(1).relu())


def tied(m: Net, x: Tensor) -> Tensor:
    states = m.table((x * 9).long()).mean(1).relu()
    return m.project(states) @ m.table.weight.T


MEANT = {
    "a low rank": Net(lambda m, x: m.l2(F.relu(m.l1(m.l0(x)))), **linear(64, 4, 64, 10)),
    "a linear autoencoder": nn.Sequential(Linear(64, 8), Linear(8, 64)),
    "an autoencoder's code": nn.Sequential(
        Linear(64, 32), nn.ReLU(), Linear(32, 8), Linear(8, 32), nn.ReLU(), Linear(32, 64)
    ),
    "a latent of a few numbers": nn.Sequential(Linear(64, 256), nn.ReLU(), Linear(256, 16), Linear(16, 10)),
    "one linear layer": Linear(64, 10),
    "a layer norm between": nn.Sequential(Linear(64, 64), nn.LayerNorm(64), Linear(64, 10)),
    "a function between": Net(lambda m, x: m.l1(torch.sin(m.l0(x))), **linear(64, 64, 10)),
    "an activation of the user's own": Net(lambda m, x: m.l1(OwnTanh.apply(m.l0(x))), **linear(64, 64, 10)),
    "an activation in place": Net(lambda m, x: m.l1(F.relu(m.l0(x), inplace=True)), **linear(64, 64, 10)),
    "an activation by assignment": Net(lambda m, x: m.l1(by_assignment(m.l0(x))), **linear(64, 64, 10)),
    "an activation of a view": Net(lambda m, x: m.l1(through_a_view(m.l0(x))), **linear(64, 64, 10)),
    "a residual": Net(lambda m, x: m.l1(x + m.l0(x)), **linear(64, 64, 10)),
    "another use": Net(lambda m, x: m.l1(h := m.l0(x)) + h[:, :10].relu(), **linear(64, 64, 10)),
    "a gate": Net(lambda m, x: m.l2(m.l0(x) * torch.sigmoid(m.l1(x))), l0=Linear(64, 64), l1=Linear(64, 64), l2=Linear(64, 10)),
    "a gated unit": Net(lambda m, x: m.l1(F.glu(m.l0(x))), l0=Linear(64, 128), l1=Linear(64, 10)),
    "two heads": Net(lambda m, x: m.l1(h := m.l0(x)) + m.l2(h).exp(), l0=Linear(64, 64), l1=Linear(64, 10), l2=Linear(64, 10)),
    "noise between": Net(lambda m, x: m.l1((h := m.l0(x)) + torch.randn_like(h)), **linear(64, 64, 10)),
    "the same layer twice": Net(lambda m, x: m.l1(m.l0(m.l0(x)).relu()), **linear(64, 64, 10)),
    "after an embedding": Net(
        lambda m, x: m.head(m.body(m.table((x * 9).long())).relu().mean(1)),
        table=nn.Embedding(10, 16), body=Linear(16, 32), head=Linear(32, 10),
    ),
    "a one-hot table": Net(
        lambda m, x: m.head(m.body(m.table(F.one_hot((x * 9).long(), 10).float())).relu().mean(1)),
        table=Linear(10, 16), body=Linear(16, 32), head=Linear(32, 10),
    ),
    "after a recurrent layer": Net(
        lambda m, x: m.head(m.rnn(m.embed(x.view(-1, 8, 8)))[0][:, -1]),
        embed=Linear(8, 16), rnn=nn.GRU(16, 16, batch_first=True), head=Linear(16, 10),
    ),
    "attention by hand": Net(attention, embed=Linear(8, 16), qkv=Linear(16, 48), out=Linear(16, 16), head=Linear(16, 10)),
    "a tied head": Net(tied, table=nn.Embedding(10, 32), project=Linear(32, 32)),
    "a normalising flow": Net(
        coupling, mix=parameter(64, 64), scale=Linear(32, 32), shift=Linear(32, 32), head=Linear(64, 10)
    ),
    "a sum over a set": Net(
        lambda m, x: m.after(m.each(x.view(-1, 8, 8)).sum(1)),
        each=nn.Sequential(Linear(8, 32), nn.ReLU(), Linear(32, 32)),
        after=nn.Sequential(Linear(32, 32), nn.ReLU(), Linear(32, 10)),
    ),
    "one axis after the other": Net(two_axes, l0=Linear(8, 8), l1=Linear(8, 8), head=Linear(64, 10)),
    "heads of their own": Net(
        lambda m, x: m.head(m.l1(m.l0(x).view(-1, 8, 8)).flatten(1).relu()),
        l0=Linear(64, 64), l1=Linear(8, 8), head=Linear(64, 10),
    ),
    "a frozen trunk": Net(lambda m, x: m.head(m.trunk(x)), trunk=Linear(64, 64).requires_grad_(False), head=Linear(64, 10)),
    "a random projection": Net(lambda m, x: m.l1((x @ torch.eye(64)).relu()), **linear(64, 64, 10)),
}  # fmt: skip


def by_assignment(h: Tensor) -> Tensor:
    h = h.clone()
    h[h < 0] = 0
    return h


def through_a_view(h: Tensor) -> Tensor:
    h = h.clone()
    h.view(-1).relu_()
    return h


ON_IMAGES = {
    "depthwise and pointwise": nn.Sequential(
        Conv2d(1, 8, 3), nn.ReLU(), Conv2d(8, 8, 3, groups=8), Conv2d(8, 16, 1), nn.ReLU(), nn.Flatten(), Linear(256, 10)
    ),
    "a linear bottleneck": nn.Sequential(
        Conv2d(1, 32, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU6(), Conv2d(32, 8, 1, bias=False), nn.BatchNorm2d(8),
        Conv2d(8, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), Linear(48, 10),
    ),
    "along one axis each": nn.Sequential(
        Conv2d(1, 16, (1, 5)), Conv2d(16, 16, (8, 1)), nn.BatchNorm2d(16), nn.ELU(), nn.Flatten(), Linear(64, 10)
    ),
    "a learned enlargement": nn.Sequential(
        Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), Conv2d(16, 10, 1), nn.ConvTranspose2d(10, 10, 2, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ),
    "shuffled pixels": nn.Sequential(
        Conv2d(1, 16, 3, padding=1), nn.ReLU(), Conv2d(16, 64, 3, padding=1), nn.PixelShuffle(2), Conv2d(16, 10, 3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ),
    "a joined skip": Net(
        lambda m, x: m.last(torch.cat([m.up(m.down(x).relu()), x], 1)).mean((2, 3)),
        down=Conv2d(1, 16, 2, stride=2), up=nn.ConvTranspose2d(16, 8, 2, stride=2), last=Conv2d(9, 10, 3),
    ),
    "the largest of a window": nn.Sequential(Conv2d(1, 16, 3), nn.MaxPool2d(2), nn.Flatten(), Linear(144, 10)),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_linear_layers_that_do_not_collapse_are_not_accused(name: str) -> None:
    x, y = digits()
    model = MEANT[name]
    data = (x, x) if "autoencoder" in name else (x, y)
    loss = nn.MSELoss() if "autoencoder" in name else nn.CrossEntropyLoss()
    found = look(training(model, loss, data), "missing-nonlinearity")
    assert not found.findings
    assert not found.not_examined


@pytest.mark.parametrize("name", ON_IMAGES)
def test_factored_convolutions_are_not_accused(name: str) -> None:
    found = look(on_images(ON_IMAGES[name]), "missing-nonlinearity")
    assert not found.findings
    assert not found.not_examined


def hand_written(m: Net, x: Tensor) -> Tensor:
    return torch.addmm(m.b, (x @ m.w).view(-1, 32), m.v)


COLLAPSING = {
    "dropout between": (nn.Sequential(Linear(64, 64), nn.Dropout(0.2), Linear(64, 10)), "layer 0", "layer 2"),
    "batch norm between": (nn.Sequential(Linear(64, 64, bias=False), nn.BatchNorm1d(64), Linear(64, 10)), "layer 0", "layer 2"),
    "one of several": (Net(lambda m, x: m.l2(m.l1(m.l0(x).relu())), **linear(64, 64, 64, 10)), "l1", "l2"),
    "a scale between": (Net(lambda m, x: m.l1(m.l0(x) * 0.5 + 1), **linear(64, 64, 10)), "l0", "l1"),
    "the last of a sequence": (
        Net(lambda m, x: m.l1(m.l0(x.view(-1, 8, 8))[:, -1]), l0=Linear(8, 16), l1=Linear(16, 10)), "l0", "l1",
    ),
    "products by hand": (Net(hand_written, w=parameter(64, 32), v=parameter(32, 10), b=parameter(10)), "w", "v"),
    "an einsum": (
        Net(lambda m, x: m.l1(torch.einsum("nd,de->ne", x, m.w)), w=parameter(64, 32), l1=Linear(32, 10)), "w", "l1",
    ),
    "a normed weight": (
        Net(lambda m, x: m.l1(m.l0(x)), l0=nn.utils.parametrizations.weight_norm(Linear(64, 64)), l1=Linear(64, 10)), "l0", "l1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLAPSING)
def test_linear_layers_that_collapse_are_named_both(name: str) -> None:
    model, first, last = COLLAPSING[name]
    finding = look(training(model), "missing-nonlinearity").one()
    assert finding.summary.startswith(first)
    assert f"feeds {last} (" in finding.summary
    assert finding.fix.startswith(f"Put an activation between {first} and {last}")


CONVOLUTIONS = {
    "two convolutions": nn.Sequential(Conv2d(1, 8, 3), Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), Linear(256, 10)),
    "a convolution and a linear layer": nn.Sequential(Conv2d(1, 16, 3), nn.Flatten(), Linear(576, 10)),
    "an average between": nn.Sequential(Conv2d(1, 16, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), Linear(64, 10)),
    "channels moved last": Net(
        lambda m, x: m.last((m.first(x.squeeze(1)).transpose(1, 2) @ m.w).relu()).mean(1),
        first=nn.Conv1d(8, 16, 3), w=parameter(16, 16), last=Linear(16, 10),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_that_collapse_are_named(name: str) -> None:
    assert look(on_images(CONVOLUTIONS[name]), "missing-nonlinearity").names == ["missing-nonlinearity"]


def test_the_line_of_the_second_layer_is_told() -> None:
    finding = look(training(COLLAPSING["one of several"][0]), "missing-nonlinearity").one()
    assert finding.location is not None
    assert finding.location.file.endswith("test_model_flow.py")


def test_layers_of_a_checkpoint_are_not_judged() -> None:
    model = nn.Sequential(Linear(64, 64), nn.BatchNorm1d(64), Linear(64, 64), Linear(64, 10))
    nn.init.uniform_(model[1].weight, 0.5, 1.5)
    found = look(training(model), "missing-nonlinearity")
    assert not found.findings
    assert "checkpoint" in found.not_examined["missing-nonlinearity"]


class Dense(HandLinear):
    """A layer called dense that applies its activation itself."""

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.before = super().forward(x)
        return np.maximum(self.before, 0)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return super().backward(grad * (self.before > 0))


def test_a_hand_written_layer_with_its_own_activation_is_not_linear() -> None:
    kit = NumpyKit()
    model = kit.sequential(Dense(64, 32), Dense(32, 32), kit.linear(32, 10))
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model))
    found = look(subject, "missing-nonlinearity")
    assert not found.findings
    assert not found.not_examined


class Residual(HandSequential):
    def forward(self, x: np.ndarray) -> np.ndarray:
        first, second, last = self.layers
        h = first.forward(x)
        return last.forward(h + second.forward(h))


def test_what_happens_between_hand_written_layers_is_not_guessed() -> None:
    kit = NumpyKit()
    model = Residual(kit.linear(64, 64), kit.linear(64, 64), kit.linear(64, 10))
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model))
    assert not look(subject, "missing-nonlinearity").findings


def dropped(p: float, training_flag: bool | None = None, last: bool = False) -> nn.Module:
    def run(m: Net, x: Tensor) -> Tensor:
        active = m.training if training_flag is None else training_flag
        if last:
            return F.dropout(m.l1(m.l0(x).relu()), p, active)
        return m.l1(F.dropout(m.l0(x).relu(), p=p, training=active))

    return Net(run, **linear(64, 64, 10))


def test_strong_dropout_written_as_a_function_is_found() -> None:
    finding = look(training(dropped(0.9)), "dropout-too-strong").one()
    assert finding.numbers["p"] == 0.9
    assert finding.location is not None
    assert finding.location.file.endswith("test_model_flow.py")


def test_dropout_on_the_output_written_as_a_function_is_found() -> None:
    finding = look(training(dropped(0.3, last=True)), "dropout-too-strong").one()
    assert "output" in finding.summary


@pytest.mark.parametrize("model", [dropped(0.5), dropped(0.9, training_flag=False), dropped(0.0, last=True)])
def test_dropout_as_usual_or_switched_off_is_not_accused(model: nn.Module) -> None:
    assert not look(training(model), "dropout-too-strong").findings


def test_blotting_out_the_input_is_not_dropout_of_hidden_units() -> None:
    model = Net(lambda m, x: m.l1(m.l0(F.dropout(x, 0.75, m.training)).relu()), **linear(64, 64, 64))
    x, _ = digits()
    assert not look(training(model, nn.MSELoss(), (x, x)), "dropout-too-strong").findings


def test_dropping_weights_is_not_dropping_units() -> None:
    model = Net(lambda m, x: m.l1(F.linear(x, F.dropout(m.l0.weight, 0.7), m.l0.bias).relu()), **linear(64, 64, 10))
    assert not look(training(model), "dropout-too-strong").findings


def over_time(*layers: nn.Module) -> Subject:
    x, y = digits()
    model = nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), Linear(96, 10))
    return training(model, data=(x.reshape(-1, 8, 8), y))


@pytest.mark.parametrize(
    "norm", [nn.InstanceNorm1d(16), nn.GroupNorm(16, 16), nn.BatchNorm1d(16)], ids=lambda n: type(n).__name__
)
def test_a_bias_before_a_norm_of_each_channel_is_wasted(norm: nn.Module) -> None:
    assert look(over_time(nn.Conv1d(8, 16, 3), norm), "bias-before-norm").one().where == "0"


@pytest.mark.parametrize(
    "norm", [nn.GroupNorm(4, 16), nn.LayerNorm([16, 6]), nn.BatchNorm1d(16).eval()], ids=lambda n: type(n).__name__
)
def test_a_bias_before_a_norm_over_channels_or_with_fixed_statistics_counts(norm: nn.Module) -> None:
    assert not look(over_time(nn.Conv1d(8, 16, 3), norm), "bias-before-norm").findings


def test_a_bias_that_also_goes_another_way_counts() -> None:
    model = Net(
        lambda m, x: m.head(torch.relu(m.norm(h := m.first(x)) + h)),
        first=Linear(64, 64), norm=nn.BatchNorm1d(64), head=Linear(64, 10),
    )  # fmt: skip
    assert not look(training(model), "bias-before-norm").findings


def test_a_bias_of_each_feature_is_not_removed_by_a_norm_over_rows() -> None:
    x, y = digits()
    model = nn.Sequential(Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), Linear(64, 10))
    assert not look(training(model, data=(x.reshape(-1, 8, 8), y)), "bias-before-norm").findings

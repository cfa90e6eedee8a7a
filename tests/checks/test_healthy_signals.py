"""What a healthy start looks like: each activation in its own range, residual nets, norms, embeddings, small last layers."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.checks.looking import BASIS, look_with, training
from tests.material import digit_images, digits

SIGNAL = ("bad-initialisation", "signal-grows-or-fades", "dead-units", "saturated-units")


def found(model: nn.Module, data=None) -> list[str]:
    look = look_with({*BASIS, "start"}, training(model, data=data or centred()), *SIGNAL)
    return [f"{f.name}: {f.where} {f.summary}" for f in look.findings]


def centred() -> tuple[np.ndarray, np.ndarray]:
    x, y = digits()
    return ((x - x.mean()) / x.std()).astype(np.float32), y


def centred_images() -> tuple[np.ndarray, np.ndarray]:
    x, y = centred()
    return x.reshape(-1, 1, 8, 8), y


def tokens() -> tuple[np.ndarray, np.ndarray]:
    x, y = digits()
    return (x * 16).astype(np.int64), y


ACTIVATIONS = [
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus, nn.Sigmoid,
    nn.Tanh, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid, nn.Softsign,
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [1, 3])
def test_every_activation_has_its_own_healthy_range(activation: type[nn.Module], depth: int) -> None:
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(64, 64), activation())]
    assert not found(nn.Sequential(*hidden, nn.Linear(64, 10)))


class Residual(nn.Module):
    def __init__(self, width: int, norm: bool, last_zero: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)
        if last_zero:
            nn.init.zeros_(self.two.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.two(torch.relu(self.one(self.norm(x))))


class Scaled(nn.Module):
    """A residual branch that starts at almost nothing, as deep vision models do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch, self.scale = nn.Linear(width, width), nn.Parameter(torch.full((width,), 1e-4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * torch.nn.functional.gelu(self.branch(x))


class Words(nn.Module):
    def __init__(self, std: float) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(17, 48, padding_idx=0), nn.Parameter(torch.zeros(64, 48))
        nn.init.normal_(self.words.weight, std=std)
        self.body = nn.TransformerEncoderLayer(48, 4, 96, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.body(self.words(ids) + self.places)).mean(1))


class Bottleneck(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        conv = [
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
        ]
        self.way = nn.Sequential(*conv, nn.BatchNorm2d(8))
        nn.init.zeros_(self.way[-1].weight)  # so that the block starts as nothing

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.way(x))


class Gated(nn.Module):
    """A gate that starts closed, as in highway nets: its bias is far below zero."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(64, 64), nn.Linear(64, 64)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.value(x)) + (1 - gate) * x


def small_last_layer(scale: float) -> nn.Module:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model[2].weight.data *= scale
    nn.init.zeros_(model[2].bias)
    return model


def initialised(start, activation: type[nn.Module] = nn.ReLU, depth: int = 4) -> nn.Module:
    model = nn.Sequential(*(m for _ in range(depth) for m in (nn.Linear(64, 64), activation())), nn.Linear(64, 10))
    for layer in model:
        if isinstance(layer, nn.Linear):
            start(layer.weight)
            nn.init.zeros_(layer.bias)
    return model


def normed(norm, depth: int = 8) -> nn.Module:
    return nn.Sequential(*(m for _ in range(depth) for m in (nn.Linear(64, 64), norm(), nn.ReLU())), nn.Linear(64, 10))


def wide_and_sparse() -> nn.Module:
    """Ten times as many units as inputs: some of them are off for most samples, and that is what they are for."""
    return nn.Sequential(nn.Linear(64, 640), nn.ReLU(), nn.Linear(640, 64), nn.ReLU(), nn.Linear(64, 10))


def sinus() -> nn.Module:
    class Sine(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    return nn.Sequential(nn.Linear(64, 64), Sine(), nn.Linear(64, 64), Sine(), nn.Linear(64, 10))


DENSE = {
    "residual with norms": lambda: nn.Sequential(
        *(Residual(64, norm=True) for _ in range(8)), nn.LayerNorm(64), nn.Linear(64, 10)
    ),
    "residual without norms": lambda: nn.Sequential(*(Residual(64, norm=False) for _ in range(6)), nn.Linear(64, 10)),
    "residual that starts as nothing": lambda: nn.Sequential(*(Residual(64, True, True) for _ in range(6)), nn.Linear(64, 10)),
    "scaled branches": lambda: nn.Sequential(*(Scaled(64) for _ in range(6)), nn.Linear(64, 10)),
    "closed gates": lambda: nn.Sequential(Gated(), Gated(), Gated(), nn.Linear(64, 10)),
    "last layer a hundredth": lambda: small_last_layer(0.01),
    "last layer zero": lambda: small_last_layer(0.0),
    "kaiming": lambda: initialised(lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu")),
    "xavier": lambda: initialised(nn.init.xavier_uniform_, nn.Tanh),
    "orthogonal": lambda: initialised(lambda w: nn.init.orthogonal_(w, 2**0.5)),
    "truncated normal": lambda: initialised(lambda w: nn.init.trunc_normal_(w, std=0.1)),
    "batch norm": lambda: normed(lambda: nn.BatchNorm1d(64)),
    "layer norm": lambda: normed(lambda: nn.LayerNorm(64)),
    "group norm": lambda: normed(lambda: nn.GroupNorm(8, 64)),
    "wide": wide_and_sparse,
    "sines": sinus,
    "dropout": lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10)),
    "narrow": lambda: nn.Sequential(nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 10)),
    "logistic regression": lambda: nn.Linear(64, 10),
}


@pytest.mark.parametrize("name", DENSE)
def test_a_healthy_start_is_silent(name: str) -> None:
    assert not found(DENSE[name]())


@pytest.mark.parametrize("std", [1.0, 0.02])
def test_embeddings_of_both_scales_are_healthy(std: float) -> None:
    assert not found(Words(std), tokens())


def test_deep_convolutions_with_blocks_that_start_as_nothing_are_healthy() -> None:
    stem = [nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    model = nn.Sequential(*stem, *(Bottleneck() for _ in range(4)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    assert not found(model, centred_images())


def test_pixels_between_zero_and_one_and_pooling_are_healthy() -> None:
    conv = [nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 10)]
    assert not found(nn.Sequential(*conv), digit_images())


def test_recurrent_layers_are_healthy() -> None:
    class Last(nn.Module):
        def __init__(self, kind: type[nn.RNNBase]) -> None:
            super().__init__()
            self.rnn, self.head = kind(8, 32, num_layers=2, batch_first=True), nn.Linear(32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x.reshape(-1, 8, 8))[0][:, -1])

    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        assert not found(Last(kind)), kind

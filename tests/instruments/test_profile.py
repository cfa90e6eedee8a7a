"""Where time and memory go: shares that add up, bytes that can be counted by hand."""

import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import sleuth
from tests.instruments.leaving import digit_loader, mlp
from tests.material import digits


def test_memory_is_what_can_be_counted_by_hand() -> None:
    model = mlp(64, 128, 10)
    loader, _ = digit_loader(64)
    found = sleuth.profile(model, loader, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.Adam(model.parameters()), steps=3)
    size = sum(p.numel() * 4 for p in model.parameters())
    steps = 4 * len(list(model.parameters()))  # Adam counts its steps for each parameter
    assert found.memory.parameters == found.memory.gradients == size
    assert found.memory.optimiser == 2 * size + steps
    hidden, scores, inputs = 64 * 128 * 4, 64 * 10 * 4, 64 * 64 * 4
    least, most = hidden + scores + inputs, 2 * (hidden + scores + inputs)
    assert least <= found.memory.activations <= most
    assert found.memory.peak is not None
    assert found.memory.peak >= 4 * size + hidden
    assert found.memory.peak < 8 * size + most
    assert abs(found.memory.growth) < 1024


def test_phases_and_layers_add_up_and_the_slow_one_stands_first() -> None:
    class Nap(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.02)
            return x

    model = nn.Sequential(nn.Linear(64, 32), Nap(), nn.Linear(32, 10))
    loader, _ = digit_loader(64)
    found = sleuth.profile(model, loader, loss=nn.CrossEntropyLoss(), steps=3)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.shares["forward"] > 0.5
    assert found.slowest[0].path == "1"
    assert found.slowest[0].forward == pytest.approx(0.02, rel=0.5)
    assert sum(found.share_of(layer) for layer in found.layers) == pytest.approx(1)
    flops = {layer.path: layer.flops for layer in found.layers}
    assert (flops["0"], flops["1"], flops["2"]) == (2 * 64 * 64 * 32, 0, 2 * 64 * 32 * 10)


def test_a_loader_that_is_slow_shows_as_data() -> None:
    class Slow(Dataset):
        def __len__(self) -> int:
            return 64

        def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
            time.sleep(0.002)
            return torch.as_tensor(digits()[0][i]), int(digits()[1][i])

    model = mlp(64, 10)
    found = sleuth.profile(model, DataLoader(Slow(), 16), loss=nn.CrossEntropyLoss(), steps=3)
    assert found.shares["data"] > 0.5
    assert found.seconds.data >= 0.03


def test_what_every_step_leaves_behind_is_growth() -> None:
    model, kept = mlp(64, 10), []
    loader, _ = digit_loader(64)

    def step(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        kept.append(torch.ones(50_000))
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    found = sleuth.profile(model, loader, step=step, steps=2)
    assert found.memory.growth == pytest.approx(200_000, rel=0.1)
    assert "leaves 195 kB behind" in str(found)


def test_nothing_is_said_on_standard_error(capfd) -> None:
    loader, _ = digit_loader(64)
    sleuth.profile(mlp(64, 10), loader, loss=nn.CrossEntropyLoss(), steps=1)
    assert capfd.readouterr().err == ""

"""The loss around the weights, against a plain loop; interrupted and taken up again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from sleuth.instruments.directions import filter_normalised
from tests.instruments.leaving import left_as_it_was, mlp
from tests.material import digits


def _parts():
    torch.manual_seed(0)
    x, y = (torch.as_tensor(a[:96]) for a in digits())
    model = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 10))
    return model, [(x[:64], y[:64]), (x[64:], y[64:])], nn.CrossEntropyLoss()


def test_the_losses_are_those_of_a_plain_loop() -> None:
    model, batches, criterion = _parts()
    with left_as_it_was(model):
        found = sleuth.landscape(model, batches, loss=criterion, points=5, batches=2, seed=3)
    weights = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
    generator = np.random.default_rng(3)
    first, second = (filter_normalised(weights, generator) for _ in range(2))
    model.eval()
    for i, a in enumerate(found.distances):
        for j, b in enumerate(found.distances):
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p.copy_(torch.as_tensor(weights[name] + np.float32(a) * first[name] + np.float32(b) * second[name]))
                losses = [criterion(model(x), y).item() for x, y in batches]
            assert found.losses[i, j] == pytest.approx((64 * losses[0] + 32 * losses[1]) / 96, rel=1e-6)


def test_directions_are_as_long_as_the_weights_filter_by_filter() -> None:
    weights = {"conv": np.random.default_rng(0).normal(size=(6, 3, 3, 3)), "bias": np.ones(6)}
    weights["conv"][2] *= 100
    found = filter_normalised(weights, np.random.default_rng(1))
    assert np.linalg.norm(found["conv"].reshape(6, -1), axis=1) == pytest.approx(
        np.linalg.norm(weights["conv"].reshape(6, -1), axis=1)
    )
    assert not found["bias"].any()


def test_a_seed_gives_the_same_again_and_the_middle_is_the_model() -> None:
    model, batches, criterion = _parts()
    one, again, other = (sleuth.landscape(model, batches, loss=criterion, dimensions=1, points=7, seed=s) for s in (0, 0, 1))
    assert np.array_equal(one.losses, again.losses)
    assert not np.array_equal(one.losses, other.losses)
    model.eval()
    assert one.centre == pytest.approx(criterion(model(batches[0][0]), batches[0][1]).item(), rel=1e-6)


def test_what_was_interrupted_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model, batches, criterion = _parts()
    whole = sleuth.landscape(model, batches, loss=criterion, points=5)
    file, calls = tmp_path / "landscape.npz", []

    def counted(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        calls.append(None)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return criterion(output, target)

    with pytest.raises(KeyboardInterrupt):
        sleuth.landscape(model, batches, loss=counted, points=5, file=file)
    found = sleuth.landscape(model, batches, loss=counted, points=5, file=file)
    assert np.array_equal(found.losses, whole.losses)
    assert len(calls) == 11 + 15
    assert [p.name for p in tmp_path.iterdir()] == ["landscape.npz"]
    with pytest.raises(sleuth.UnusableInput, match="other weights"):
        sleuth.landscape(model, batches, loss=criterion, points=5, file=file, seed=9)
    file.write_text("nothing")
    with pytest.raises(sleuth.UnusableInput, match="not a landscape"):
        sleuth.landscape(model, batches, loss=criterion, points=5, file=file)


def test_losses_that_are_not_finite_are_kept_and_drawn() -> None:
    model = mlp(64, 16, 10)
    x, y = (torch.as_tensor(a[:32]) for a in digits())

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.log(output.mean() + 0.05)

    found = sleuth.landscape(model, [(x, y)], loss=loss, points=7, distance=2.0)
    assert not np.isfinite(found.losses).all()
    assert "not finite" in str(found)
    assert found.plot().axes

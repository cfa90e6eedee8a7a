"""Gradients by parameter, against what autograd itself gives."""

import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.leaving import digit_loader, mlp
from tests.material import digits


def test_norms_are_those_of_autograd() -> None:
    model, criterion = mlp(64, 32, 10), nn.CrossEntropyLoss()
    x, y = (torch.as_tensor(a[:50]) for a in digits())
    found = sleuth.gradients(model, [(x, y)], loss=criterion)
    criterion(model(x), y).backward()
    for name, parameter in model.named_parameters():
        assert found[name].norm == pytest.approx(parameter.grad.norm().item(), rel=1e-5)
        assert found[name].largest == pytest.approx(parameter.grad.abs().max().item())
    assert found.norm == pytest.approx(nn.utils.clip_grad_norm_(model.parameters(), 1e9).item(), rel=1e-5)
    assert not found.diagnosis
    assert sleuth.gradients(model).norm == pytest.approx(found.norm), "those that a backward has left"


def test_each_state_is_told_from_the_others() -> None:
    model = mlp(64, 32, 32, 32, 10)
    model.add_module("unused", nn.Linear(3, 3))
    model.forward = lambda x: nn.Sequential(*list(model)[:-1])(x)
    criterion = nn.CrossEntropyLoss()
    criterion(model(torch.as_tensor(digits()[0][:64])), torch.as_tensor(digits()[1][:64])).backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    with torch.no_grad():
        gradients["0.weight"][0, 0] = float("nan")
        gradients["0.bias"][0] = float("inf")
        gradients["2.weight"].zero_()
        gradients["2.bias"].fill_(1e-12)
        gradients["4.weight"].fill_(50.0)
    found = sleuth.gradients(model)
    states = {p.path: p.state for p in found.parameters}
    assert states["0.weight"] == "nan"
    assert states["0.bias"] == "inf"
    assert states["2.weight"] == "zero"
    assert states["2.bias"] == "small"
    assert states["4.weight"] == "large"
    assert states["unused.weight"] == "missing"
    assert states["6.weight"] == "fine"
    assert found["0.weight"].nans == 1
    assert found["2.bias"].small == 32
    assert len(found.diagnosis) == 6
    assert "unused.weight" in str(found)


def test_gradients_that_fade_with_depth_are_said_to() -> None:
    layers = [layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Sigmoid())]
    loader, _ = digit_loader()
    found = sleuth.gradients(nn.Sequential(*layers, nn.Linear(64, 10)), loader, loss=nn.CrossEntropyLoss())
    assert any("fade with depth" in text for text in found.diagnosis)

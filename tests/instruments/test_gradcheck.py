"""A backward of one's own that is wrong is found, and where."""

import torch
from torch import nn

import sleuth
from tests.instruments.leaving import digit_loader
from tests.kits.torch_kit import TanhByHand


def _found(right: bool):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 16), TanhByHand(right), nn.Linear(16, 10))
    loader, _ = digit_loader()
    return sleuth.gradcheck(model, loader, loss=nn.CrossEntropyLoss())


def test_a_wrong_backward_shows_in_the_parameters_before_it() -> None:
    found = _found(right=False)
    assert found.wrong == ("0.weight", "0.bias")
    assert not found.right
    assert {p.path: p.state for p in found.parameters}["2.weight"] == "right"


def test_a_right_backward_is_right_to_many_digits() -> None:
    found = _found(right=True)
    assert found.right
    assert all(p.error < 1e-5 for p in found.parameters if p.error is not None)
    assert sum(p.state == "right" for p in found.parameters) >= 3

"""Units that never fire, over all data."""

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.leaving import digit_loader, mlp
from tests.material import digits


def test_exactly_those_units_are_dead_that_are_zero_for_every_sample() -> None:
    model = mlp(64, 32, 10)
    with torch.no_grad():
        model[0].bias[[3, 7]] = -50.0
    loader, _ = digit_loader()
    found = sleuth.dead_units(model, loader)
    outputs = torch.relu(model[0](torch.as_tensor(digits()[0]))).detach().numpy()
    assert found.samples == len(outputs)
    assert found["1"].dead == tuple(np.flatnonzero((outputs == 0).all(axis=0)).tolist())
    assert {3, 7} <= set(found["1"].dead)
    assert found["1"].active == pytest.approx((outputs != 0).mean(axis=0))


def test_channels_functions_and_constants_count() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.fc = nn.Conv2d(1, 6, 3), nn.Linear(6, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = nn.functional.relu(self.conv(x.reshape(-1, 1, 8, 8)))
            return torch.tanh(self.fc(x.mean((2, 3))))

    model = Net()
    with torch.no_grad():
        model.conv.bias.fill_(1.0)
        model.conv.bias[2] = -50.0
        model.fc.weight[1], model.fc.bias[1] = 0.0, 0.5
    loader, _ = digit_loader()
    found = sleuth.dead_units(model, loader, batches=4)
    assert found["relu"].units == 6
    assert found["relu"].dead == (2,)
    assert found["tanh"].dead == ()
    assert found["tanh"].constant == (1,)


def test_a_model_without_activations_is_told_so() -> None:
    loader, _ = digit_loader()
    with pytest.raises(sleuth.UnusableInput, match="no activation"):
        sleuth.dead_units(nn.Linear(64, 10), loader)

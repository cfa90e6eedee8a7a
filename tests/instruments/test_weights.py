"""Statistics of weights, and what is worth a warning."""

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.leaving import mlp


def test_statistics_are_those_of_the_values() -> None:
    model = mlp(64, 32, 10)
    found = sleuth.weights(model)["0.weight"]
    values = model[0].weight.detach().numpy()
    assert found.mean == pytest.approx(values.mean(), abs=1e-7)
    assert found.std == pytest.approx(values.std(), rel=1e-5)
    assert found.counts.sum() == values.size
    assert np.array_equal(found.counts, np.histogram(values, bins=found.edges)[0])


def test_weights_as_frameworks_make_them_are_worth_no_warning() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.Flatten(),
        nn.LayerNorm(144),
        nn.Linear(144, 10),
        nn.LayerNorm((3, 6)),
        nn.Embedding(5, 4),
    )
    assert not sleuth.weights(model).warnings


def test_each_oddity_is_named() -> None:
    model = mlp(64, 32, 32, 32, 32, 10)
    with torch.no_grad():
        model[0].weight.fill_(0.5)
        model[2].weight.abs_()
        model[4].weight[0, 0] = 40.0
        model[6].weight[:20] = 0.0
        model[8].weight[0, 0] = float("nan")
    found = sleuth.weights(model)
    assert "all values are 0.5" in found["0.weight"].warnings[0]
    assert "no value is negative" in found["2.weight"].warnings[0]
    assert "up to 40" in found["4.weight"].warnings[0]
    assert "62% of the values" in found["6.weight"].warnings[0]
    assert found["6.weight"].tiny_share == pytest.approx(20 / 32)
    assert "1 NaN" in found["8.weight"].warnings[0]


def test_a_pattern_that_nothing_fits_is_answered_with_what_there_is() -> None:
    assert [p.path for p in sleuth.weights(mlp(4, 3, 2), "0.*").parameters] == ["0.weight", "0.bias"]
    with pytest.raises(sleuth.UnusableInput, match=r"0\.weight"):
        sleuth.weights(mlp(4, 3, 2), "encoder.*")

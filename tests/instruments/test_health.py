"""A verdict on the numbers of one tensor."""

import json
import math

import numpy as np
import pytest
import torch

import sleuth


def test_ordinary_numbers_are_sound() -> None:
    result = sleuth.health(torch.randn(200, 10))
    assert result.ok
    assert result.count == 2000
    assert result.std == pytest.approx(1, abs=0.1)
    assert result.skewness == pytest.approx(0, abs=0.3)
    assert result.kurtosis == pytest.approx(0, abs=0.5)
    assert result.counts.sum() == 2000


@pytest.mark.parametrize(
    "values, words",
    [
        ([1.0, math.nan, 2.0], "1 of 3 values are NaN"),
        ([1.0, math.inf, -math.inf], "2 of 3 values are Inf"),
        ([0.0, 0.0], "all values are zero"),
        ([2.0, 2.0], "all values are 2"),
        ([1e-9, -1e-9], "no value is larger than"),
        ([1e6, 1.0], "overflow"),
        ([0.0] * 99 + [1.0], "99.0% of the values are zero"),
        ([], "it is empty"),
    ],
)
def test_what_is_wrong_is_said(values: list[float], words: str) -> None:
    result = sleuth.health(torch.tensor(values))
    assert not result.ok
    assert words in result.verdict
    json.dumps(result.to_dict(), allow_nan=False)


def test_numbers_are_those_of_numpy_in_every_dtype() -> None:
    x = np.random.default_rng(0).normal(3, 2, (40, 5))
    for array in (x, torch.tensor(x), torch.tensor(x).half(), torch.tensor(x).bfloat16(), x.round().astype(np.int64)):
        result = sleuth.health(array)
        assert result.mean == pytest.approx(3, abs=0.3)
        assert result.shape == (40, 5)


def test_values_that_half_precision_cannot_hold_are_told() -> None:
    small = torch.randn(100) * 1e-6
    assert "float16 loses digits" in sleuth.health(small.half()).verdict
    assert sleuth.health(small).ok


def test_ids_may_be_of_any_size() -> None:
    assert sleuth.health(torch.tensor([0, 5, 1_000_000])).ok


def test_a_tree_is_asked_which_array_is_meant() -> None:
    with pytest.raises(sleuth.UnusableInput, match=r"x, y\.0"):
        sleuth.health({"x": torch.ones(2), "y": [torch.ones(2)]})

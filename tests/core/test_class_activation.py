"""Grad-CAM from what a layer put out and its slopes: by hand, and in which cells a map is enlarged."""

import numpy as np
import pytest

from sleuth.adapters.common.inspecting.class_activation import credited, enlarged, targets_of
from sleuth.core.errors import UnusableInput


def test_channels_count_by_the_mean_of_their_slope() -> None:
    values = np.array([[[[1.0, 2.0]], [[3.0, -1.0]]]])  # one sample, two channels of one row
    slopes = np.array([[[[1.0, 3.0]], [[-1.0, -1.0]]]])
    found = credited("conv", np.array([1]), np.array([[0.2, 0.7]]), values, slopes, np.zeros((1, 3, 2, 4)))
    assert found.maps.tolist() == [[[0.0, 5.0]]]  # 2·1 - 3 and 2·2 + 1, not below zero
    assert (found.targets, found.scores) == ((1,), (0.7,))
    # Between the middles of the two cells in straight lines, and level beyond them.
    assert found.enlarged.tolist() == [[[0.0, 1.25, 3.75, 5.0]] * 2]


def test_a_map_of_its_own_size_stays_as_it_is() -> None:
    maps = np.random.default_rng(0).random((2, 3, 5)).astype(np.float32)
    assert np.array_equal(enlarged(maps, (3, 5)), maps)
    assert enlarged(maps, (6, 9)).dtype == np.float32


def test_targets_are_classes_one_for_each_sample() -> None:
    scores = np.array([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]])
    assert targets_of(None, scores).tolist() == [1, 0]
    assert targets_of(2, scores).tolist() == [2, 2]
    with pytest.raises(UnusableInput, match="3 targets for 2 samples"):
        targets_of([0, 1, 2], scores)
    with pytest.raises(UnusableInput, match="not a class: the model has 3"):
        targets_of(3, scores)

"""What may be taken for the weights of an attention."""

import numpy as np
import pytest

from sleuth.adapters.common.inspecting.attention_weights import are_weights, by_heads, require_room
from sleuth.core.errors import UnusableInput

STEP = float(np.finfo(np.float32).eps)
ROWS = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)


def test_rows_that_sum_to_one_are_weights_and_a_row_may_look_at_nothing() -> None:
    assert are_weights(ROWS, STEP)
    assert are_weights(np.array([[0.25, 0.75], [0.0, 0.0]]), STEP)
    assert are_weights(np.array([[0.25, 0.75], [np.nan, np.nan]]), STEP)


@pytest.mark.parametrize("rows", [2 * ROWS, 0.7 * ROWS, ROWS - 0.5, np.zeros((2, 2)), np.array([[1.5, -0.5]]), ROWS * 1.001])
def test_other_rows_are_none(rows: np.ndarray) -> None:
    assert not are_weights(rows, STEP)


def test_coarse_numbers_may_be_off_by_their_rounding() -> None:
    assert are_weights(ROWS * np.float32(1.01), 2**-7)


def test_weights_have_an_axis_for_heads() -> None:
    assert by_heads(np.zeros((5, 3, 4))).shape == (5, 1, 3, 4)
    assert by_heads(np.zeros((2, 5, 6, 3, 4))).shape == (10, 6, 3, 4)


def test_a_gigabyte_is_too_much() -> None:
    require_room([(8, 12, 1024, 1024)])
    with pytest.raises(UnusableInput, match="more than 1 GB"):
        require_room([(8, 12, 1024, 1024)] * 3)

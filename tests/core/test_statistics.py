"""Statistics of parts, merged, equal the statistics of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sleuth import kernel
from sleuth.core.statistics import COLUMNS, Statistics, merge, norm_of, rms_of

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
ARRAYS = hnp.arrays(np.float32, st.integers(0, 200), elements=FLOATS)


def assert_same(a: np.ndarray, b: np.ndarray) -> None:
    one, other = Statistics.from_row(a), Statistics.from_row(b)
    for column in ("count", "zeros", "nans", "infs", "min", "max"):
        assert getattr(one, column) == getattr(other, column), column
    assert one.mean == pytest.approx(other.mean, rel=1e-6, abs=1e-6 * (1e-300 + one.abs_sum / max(one.finite, 1)))
    assert one.abs_sum == pytest.approx(other.abs_sum, rel=1e-6)
    scale = max(one.rms**2 * one.finite, 1e-300)
    assert abs(one.m2 - other.m2) <= 1e-6 * scale


@settings(deadline=None)
@given(ARRAYS, ARRAYS)
def test_merged_parts_equal_the_whole(a: np.ndarray, b: np.ndarray) -> None:
    whole = kernel.measure([np.concatenate([a, b])])
    assert_same(merge(kernel.measure([a]), kernel.measure([b]))[0], whole[0])


@settings(deadline=None)
@given(ARRAYS, ARRAYS)
def test_merging_does_not_depend_on_the_order(a: np.ndarray, b: np.ndarray) -> None:
    one, other = kernel.measure([a]), kernel.measure([b])
    assert_same(merge(one, other)[0], merge(other, one)[0])


@settings(deadline=None)
@given(ARRAYS)
def test_measuring_agrees_with_plain_numpy(values: np.ndarray) -> None:
    found = Statistics.from_row(kernel.measure([values])[0])
    finite = values[np.isfinite(values)].astype(np.float64)
    assert found.count == values.size
    assert found.nans == np.isnan(values).sum()
    assert found.infs == np.isinf(values).sum()
    assert found.zeros == (values == 0).sum()
    if finite.size:
        assert found.min == finite.min()
        assert found.max == finite.max()
        assert found.std == pytest.approx(finite.std(), rel=1e-6, abs=1e-12 * np.abs(finite).max())


def test_large_means_do_not_spoil_the_variance() -> None:
    values = np.random.default_rng(0).normal(1e4, 1.0, 100_000).astype(np.float32)
    found = Statistics.from_row(kernel.measure([values])[0])
    assert found.variance == pytest.approx(values.astype(np.float64).var(), rel=1e-6)


def test_tiny_gradients_keep_their_scale() -> None:
    values = np.full(1000, 1e-30, dtype=np.float32)
    assert Statistics.from_row(kernel.measure([values])[0]).rms == pytest.approx(1e-30, rel=1e-6)


def test_kernel_and_core_mean_the_same_columns() -> None:
    assert kernel.COLUMNS == COLUMNS


def test_a_row_survives_the_round_trip() -> None:
    row = kernel.measure([np.array([1.0, 0.0, np.nan, -3.0])])[0]
    assert np.array_equal(Statistics.from_row(row).to_row(), row)


@settings(deadline=None)
@given(ARRAYS, ARRAYS)
def test_a_table_says_of_all_rows_what_each_row_says_of_itself(a: np.ndarray, b: np.ndarray) -> None:
    table = kernel.measure([a, b])
    rows = [Statistics.from_row(row) for row in table]
    assert rms_of(table) == pytest.approx([row.rms for row in rows], rel=1e-12)
    whole = None if any(not row.all_finite for row in rows) else np.hypot(*(row.norm for row in rows))
    assert norm_of(table) == (None if whole is None else pytest.approx(whole, rel=1e-9))


def test_numbers_whose_squares_no_float_holds_have_a_size() -> None:
    huge = Statistics(4, 1e200, 0.0, 1e200, 1e200, 4e200, 0, 0, 0)
    assert huge.rms == 1e200
    with np.errstate(all="raise"):
        assert rms_of(huge.to_row()[None])[0] == 1e200
        assert norm_of(huge.to_row()[None]) == np.inf

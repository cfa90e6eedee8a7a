"""The statistics are right, in C and in NumPy, for every dtype and layout."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sleuth import kernel
from sleuth.core.statistics import EXPONENT_BINS, EXPONENTS_PER_BIN, LOWEST_EXPONENT
from tests.kernel.ways import MOST, InC, InNumPy

WAYS = [InNumPy(), InC()]
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    np.int64,
    np.int32,
    np.int16,
    np.int8,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    bool,
]
# Longer than a block of the C code and than a piece of the NumPy code.
LONG = 40_000


def assert_right(found: np.ndarray, array: np.ndarray) -> None:
    """Against plain NumPy in float64: counts exact, sums to 1e-6 of the sum of |x|, variance to 1e-6."""
    values = array.astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    count, mean, m2, low, high, abs_sum, zeros, nans, infs = found
    assert (count, zeros) == (values.size, np.count_nonzero(values == 0))
    assert (nans, infs) == (np.isnan(values).sum(), np.isinf(values).sum())
    if finite.size == 0:
        assert not found[1:6].any()
        return
    total = np.abs(finite).sum()
    assert (low, high) == (finite.min(), finite.max())
    assert abs_sum == pytest.approx(total, rel=1e-6)
    assert abs(mean * finite.size - finite.sum()) <= 1e-6 * total
    exact = np.square(finite - finite.mean()).sum()
    # What float64 itself can tell of distances from a mean that is far away.
    noise = finite.size * (np.abs(finite).max() * 2**-50) ** 2
    assert abs(m2 - exact) <= 1e-6 * exact + noise


def test_the_c_code_was_built() -> None:
    assert kernel.fused is not None, "reinstall with a C compiler: pip install -e ."


def test_kernel_and_core_mean_the_same_bins() -> None:
    assert kernel.BINS == EXPONENT_BINS == 256 // EXPONENTS_PER_BIN
    assert LOWEST_EXPONENT == -128


@each_way
@settings(deadline=None, max_examples=60)
@given(array=hnp.arrays(st.sampled_from([np.float32, np.float64, np.float16]), st.integers(0, 300)))
def test_floats_of_any_value_are_measured_right(way, array: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        values = array.astype(np.float64)
        finite = values[np.isfinite(values)]
        # Squares of larger doubles saturate; that is another test's business.
        if np.abs(finite).max(initial=0) < 1e150:
            assert_right(way.measure(array), array)


@each_way
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_every_dtype_is_measured_right(way, dtype) -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(3, 5, LONG).astype(dtype) if np.dtype(dtype).kind == "f" else rng.integers(0, 100, LONG).astype(dtype)
    assert_right(way.measure(array), array)


@pytest.mark.parametrize("brain", [False, True], ids=["float16", "bfloat16"])
def test_every_code_of_half_precision_is_read_right(brain: bool) -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(65536, dtype=torch.int32).to(torch.uint16)
    for code in (codes[i : i + 512] for i in range(0, 65536, 512)):
        halves = code.view(torch.bfloat16 if brain else torch.float16)
        table = np.zeros((1, len(kernel.COLUMNS)))
        kernel.fused.measure([halves], {halves.dtype: kernel.KINDS["bfloat16" if brain else "float16"]}, table, None)
        with np.errstate(invalid="ignore"):  # signalling NaN
            assert_right(table[0], halves.float().numpy())


@each_way
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda r: r.normal(0, 1e-30, LONG), id="tiny gradients"),
        pytest.param(lambda r: r.normal(1e4, 1, LONG), id="a mean far from zero"),
        pytest.param(lambda r: np.append(1e6, r.normal(0, 1, LONG)), id="an outlier first"),
        pytest.param(lambda r: np.append(r.normal(0, 1, LONG), 1e6), id="an outlier last"),
        pytest.param(lambda r: np.repeat([1e-3, 50.0, -7e4], LONG), id="three levels"),
        pytest.param(lambda r: np.full(LONG, 0.1), id="all equal"),
        pytest.param(lambda r: np.zeros(LONG), id="all zero"),
        pytest.param(lambda r: np.maximum(r.normal(0, 1, LONG), 0), id="after a ReLU"),
        pytest.param(lambda r: np.exp(r.normal(0, 8, LONG)), id="many scales"),
        pytest.param(lambda r: np.where(r.random(LONG) < 0.5, -np.inf, r.normal(0, 1, LONG)), id="an attention mask"),
        pytest.param(lambda r: np.where(r.random(LONG) < 0.001, np.nan, r.normal(1e4, 1, LONG)), id="rare NaN far from zero"),
        pytest.param(lambda r: np.full(LONG, np.nan), id="only NaN"),
        pytest.param(lambda r: r.normal(0, 1e30, LONG), id="squares beyond float32"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_hard_values_keep_their_accuracy(way, values, dtype) -> None:
    array = values(np.random.default_rng(0)).astype(dtype)
    assert_right(way.measure(array), array)


@each_way
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda a: a.T, id="transposed"),
        pytest.param(lambda a: a.transpose(2, 0, 1), id="axes turned"),
        pytest.param(lambda a: a[::2, 1:, ::3], id="slices"),
        pytest.param(lambda a: a[::-1], id="reversed"),
        pytest.param(lambda a: np.broadcast_to(a[:1], a.shape), id="broadcast"),
        pytest.param(lambda a: a[:0], id="empty"),
        pytest.param(lambda a: a[0, 0, 0], id="one value"),
    ],
)
def test_every_layout_is_measured_right(way, view) -> None:
    array = view(np.random.default_rng(0).normal(2, 3, (40, 30, 35)).astype(np.float32))
    assert_right(way.measure(np.asarray(array)), np.asarray(array))


@each_way
def test_sums_beyond_double_are_stored_as_the_largest_number(way) -> None:
    row = way.measure(np.array([1.7e308, -1.7e308, 1.7e308]))
    assert np.isfinite(row).all()
    assert row[2] == np.finfo(np.float64).max


@each_way
@settings(deadline=None, max_examples=40)
@given(array=hnp.arrays(st.sampled_from([np.float32, np.float64, np.float16, np.int32]), st.integers(0, 300)))
def test_exponents_are_counted_in_bins_of_eight(way, array: np.ndarray) -> None:
    values = np.abs(array.astype(np.float64))
    values = values[np.isfinite(values) & (values > 0)]
    expected = np.bincount(np.clip((np.floor(np.log2(values)) + 128) // 8, 0, 31).astype(int), minlength=32)
    on_an_edge = np.abs(np.log2(values) - np.round(np.log2(values))) < 1e-12
    if not on_an_edge.any():
        assert np.array_equal(way.exponents(array), expected)


def test_both_ways_sample_the_same_values() -> None:
    rng = np.random.default_rng(0)
    for shape in ((5000,), (64, 512), (30, 40, 50)):
        array = np.exp(rng.normal(0, 10, shape)).astype(np.float32)
        for view in (array, array.T, array[..., ::2]):
            assert np.array_equal(InC().exponents(view), InNumPy().exponents(view))


@each_way
def test_a_large_array_is_sampled(way) -> None:
    assert way.exponents(np.ones(1_000_000, dtype=np.float32)).sum() in range(900, 1025)


@each_way
def test_a_sample_reaches_every_column_of_a_matrix(way) -> None:
    """One value of each 512 would always come from the same column."""
    before = np.zeros((512, 512), dtype=np.float32)
    after = before.copy()
    after[:, 1::2] = 1
    share = way.change([before], [after])[0, 1]
    assert 0.3 < share < 0.7


@each_way
@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_changes_are_those_of_the_sampled_values(way, sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    before = [rng.normal(0, 1, size).astype(np.float32) for size in sizes]
    after = [array + np.float32(0.5) for array in before]
    table = way.change(before, after)
    assert [int(row[0]) for row in table] == [kernel.sample_size(size, MOST) for size in sizes]
    assert all(row[1] == pytest.approx(0.5, abs=1e-6) for row in table if row[0])


def test_what_the_c_code_cannot_read_is_measured_in_numpy() -> None:
    swapped = np.arange(10, dtype=">f4")
    assert_right(kernel.measure([swapped])[0], swapped)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda f: f.measure([np.ones(3)], None, np.zeros((0, 9)), None), id="a table too short"),
        pytest.param(lambda f: f.measure([object()], None, np.zeros((1, 9)), None), id="no array"),
        pytest.param(lambda f: f.measure([np.ones(3, dtype=complex)], None, np.zeros((1, 9)), None), id="complex numbers"),
        pytest.param(lambda f: f.measure((), None, np.zeros((1, 9)), None), id="no list"),
        pytest.param(lambda f: f.measure([], None), id="too few arguments"),
        pytest.param(lambda f: f.keep([np.ones(3)], None, np.zeros(2), 10), id="a buffer too small"),
        pytest.param(lambda f: f.keep([np.ones(3)], None, np.zeros(3), 0), id="a sample of nothing"),
        pytest.param(lambda f: f.changes([np.ones(9)], None, np.zeros(3), 10, np.zeros((1, 9))), id="another sample"),
    ],
)
def test_misuse_raises_and_does_not_crash(call) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        call(kernel.fused)


def test_other_threads_run_while_the_c_code_measures() -> None:
    array, ticks, done = np.ones(60_000_000, dtype=np.float32), [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = ticks[0]
        InC().measure(array)
        assert ticks[0] > before + 100
    finally:
        done.set()
        thread.join()

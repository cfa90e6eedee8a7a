"""Arrays come in and out unharmed, and their statistics are NumPy's."""

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.statistics import Statistics
from sleuth.testing.conformance.rule import native, rule
from sleuth.testing.kit import Kit

# Sums are compared with Σ|x|: a sum near zero has no relative accuracy of its own.
ACCURACY = 1e-6


def difficult_arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    spoiled = rng.normal(size=(50, 4)).astype(np.float32)
    spoiled[3, 1], spoiled[7, 2], spoiled[9, 0] = np.nan, np.inf, -np.inf
    return {
        "normal": rng.normal(size=(64, 33)).astype(np.float32),
        "not finite": spoiled,
        "nothing finite": np.full((4, 2), np.nan, np.float32),
        "half": rng.normal(size=(100, 3)).astype(np.float16),
        "double": rng.normal(size=(100, 3)),
        "large mean": (rng.normal(size=(5000, 2)) + 1e4).astype(np.float32),
        "outlier first": np.concatenate([[1e6], rng.normal(size=999)]).astype(np.float32),
        "tiny": (rng.normal(size=(300, 2)) * 1e-30).astype(np.float32),
        "sparse": (rng.normal(size=(200, 5)) * (rng.random((200, 5)) > 0.7)).astype(np.float32),
        "constant": np.full((17, 3), 0.1, np.float32),
        "long": rng.integers(-(2**40), 2**40, (60, 2)),
        "bytes": rng.integers(0, 256, (40, 5)).astype(np.uint8),
        "truths": rng.random((30, 2)) > 0.5,
    }


def reference(array: np.ndarray) -> Statistics:
    """From the definitions, in double precision."""
    wide = array.astype(np.float64).reshape(-1)
    finite = wide[np.isfinite(wide)]
    mean = float(finite.mean()) if finite.size else 0.0
    return Statistics(
        count=wide.size,
        mean=mean,
        m2=float(((finite - mean) ** 2).sum()),
        min=float(finite.min()) if finite.size else 0.0,
        max=float(finite.max()) if finite.size else 0.0,
        abs_sum=float(np.abs(finite).sum()),
        zeros=int((wide == 0).sum()),
        nans=int(np.isnan(wide).sum()),
        infs=int(np.isinf(wide).sum()),
    )


def assert_equal_statistics(row: np.ndarray, expected: Statistics, name: str) -> None:
    got = Statistics.from_row(row)
    for field in ("count", "zeros", "nans", "infs", "min", "max"):
        assert getattr(got, field) == getattr(expected, field), f"{name}: {field} is {getattr(got, field)}"
    assert abs(got.mean - expected.mean) * expected.finite <= ACCURACY * expected.abs_sum, f"{name}: mean is {got.mean}"
    assert abs(got.abs_sum - expected.abs_sum) <= ACCURACY * expected.abs_sum, f"{name}: abs_sum is {got.abs_sum}"
    # The mean's own rounding, squared, is the least spread that can be told from none.
    least = expected.finite * (ACCURACY * expected.mean) ** 2
    assert abs(got.m2 - expected.m2) <= ACCURACY * expected.m2 + least, f"{name}: m2 is {got.m2}, not {expected.m2}"


@rule(Adapter)
def values_come_back_as_they_went_in(adapter: Adapter, kit: Kit) -> None:
    for name, array in difficult_arrays().items():
        given = native(kit, array)
        assert adapter.is_array(given), name
        assert np.array_equal(adapter.values(given), array, equal_nan=array.dtype.kind == "f"), name
        assert adapter.dtype(given) == str(array.dtype) == str(adapter.values(given).dtype), name
        assert adapter.device(given), name


@rule(Adapter)
def an_array_like_another_keeps_its_dtype(adapter: Adapter, kit: Kit) -> None:
    for name, array in difficult_arrays().items():
        given = native(kit, array)
        made = adapter.like(np.ascontiguousarray(array[::-1]), given)
        assert (adapter.dtype(made), adapter.device(made)) == (adapter.dtype(given), adapter.device(given)), name
        assert np.array_equal(adapter.values(made), array[::-1], equal_nan=array.dtype.kind == "f"), name


@rule(Adapter)
def statistics_equal_numpys(adapter: Adapter, kit: Kit) -> None:
    arrays = difficult_arrays()
    table = adapter.measure([native(kit, a) for a in arrays.values()])
    assert np.isfinite(table).all()
    for row, (name, array) in zip(table, arrays.items(), strict=True):
        assert_equal_statistics(row, reference(array), name)


@rule(Adapter)
def an_empty_array_can_be_measured(adapter: Adapter, kit: Kit) -> None:
    empty = native(kit, np.zeros((4, 3), np.float32))[:0]
    assert_equal_statistics(adapter.measure([empty])[0], reference(np.zeros((0, 3))), "empty")
    assert len(adapter.measure([])) == 0


@rule(Adapter)
def a_view_is_measured_like_its_copy(adapter: Adapter, kit: Kit) -> None:
    array = np.arange(60, dtype=np.float32).reshape(12, 5)
    given = native(kit, array)
    assert_equal_statistics(adapter.measure([given[1:, 2]])[0], reference(array[1:, 2]), "column")

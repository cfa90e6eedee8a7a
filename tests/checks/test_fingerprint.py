"""Fingerprints: equal samples agree through noise and changes of dtype, different ones do not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sleuth.probes.fingerprints.fingerprint import BLANK, LEAST_BLANK, fingerprints

NUMBERS = st.floats(-1e3, 1e3, width=32)
TABLES = hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=24), elements=NUMBERS)
WHOLE = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(-(2**62), 2**62))


def agree(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which rows agree up to float noise."""
    return (fingerprints([a])[1] == fingerprints([b])[1]).any(axis=1)


@given(TABLES)
def test_float64_and_float32_have_the_same_exact_fingerprint(table: np.ndarray) -> None:
    assert (fingerprints([table])[0] == fingerprints([table.astype(np.float64)])[0]).all()


@given(TABLES, st.integers(0, 2**32 - 1))
def test_noise_of_float32_parts_no_equal_samples(table: np.ndarray, seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(-1, 1, table.shape) * 1e-6
    assert agree(table, (table * (1 + noise)).astype(np.float32)).all()


@given(TABLES, st.data())
def test_equal_rows_are_equal_in_whatever_batch_they_come(table: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(table))))
    whole = fingerprints([table])
    for place, row in enumerate(order):
        alone = fingerprints([table[order][place : place + 1]])
        assert alone[0][0] == whole[0][row]
        assert (alone[1][0] == whole[1][row]).any()


@given(TABLES, TABLES)
def test_exact_fingerprints_are_equal_only_for_equal_rows(a: np.ndarray, b: np.ndarray) -> None:
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    if a.shape[1] != b.shape[1]:
        return
    rows = np.concatenate([a, b])
    marks = fingerprints([rows])[0]
    same = (rows[:, None] == rows[None]).all(axis=2)
    wide = rows.shape[1] >= LEAST_BLANK
    blank = wide & (rows == rows[:, :1]).all(axis=1)
    assert ((marks[:, None] == marks[None]) == (same | (blank[:, None] & blank[None]))).all()


@given(WHOLE)
def test_whole_numbers_count_in_full(ids: np.ndarray) -> None:
    marks = fingerprints([ids])[0]
    other = fingerprints([ids + np.eye(*ids.shape, dtype=np.int64)])[0]
    changed = np.arange(len(ids)) < ids.shape[1]
    assert (marks[changed] != other[changed]).all()


@given(st.integers(-(2**24), 2**24))
def test_a_small_whole_number_equals_its_float(number: int) -> None:
    whole = np.full((1, 3), number)
    assert (fingerprints([whole])[0] == fingerprints([whole.astype(np.float32)])[0]).all()


@settings(max_examples=20)
@given(st.integers(1, 400), st.sampled_from([1e-6, 1.0, 1e4]), st.integers(0, 99))
def test_half_precision_parts_few_equal_samples(width: int, scale: float, seed: int) -> None:
    table = np.random.default_rng(seed).normal(1, 1, size=(400, width)).astype(np.float32) * np.float32(scale)
    if scale < 1e-4:  # below what half precision holds: only its relative error counts here
        noisy = (table / np.float32(scale)).astype(np.float16).astype(np.float32) * np.float32(scale)
    else:
        noisy = table.astype(np.float16).astype(np.float32)
    assert agree(table, noisy).mean() >= 0.95


def test_noise_left_by_a_subtracted_mean_parts_few_samples() -> None:
    table = np.random.default_rng(0).normal(10, 1, size=(500, 64))
    early = ((table - table.mean(0)) / table.std(0)).astype(np.float32)
    late = (table.astype(np.float32) - table.mean(0).astype(np.float32)) / table.std(0).astype(np.float32)
    assert (early != late).any(axis=1).all()
    assert agree(early, late).mean() >= 0.99


def test_unrelated_samples_do_not_meet_even_rounded() -> None:
    rng = np.random.default_rng(0)
    for width in (4, 10, 64, 784):
        marks = fingerprints([rng.normal(size=(20_000, width)).astype(np.float32)])[1]
        repeated = max(20_000 - len(np.unique(column)) for column in marks.T)
        assert repeated <= 2, width


def test_small_columns_beside_large_ones_count() -> None:
    """Year, price and a share: the share differs, the others do not."""
    rows = np.array([[2014, 1e6, 0.1], [2014, 1e6, 0.2]], dtype=np.float32)
    assert len(np.unique(fingerprints([rows])[0])) == 2


def test_minus_zero_and_kinds_of_nan_are_the_same() -> None:
    odd = np.array([np.nan], dtype=np.float32)
    odd.view(np.uint32)[0] |= 7
    a = np.array([[0.0, np.nan, np.inf]], dtype=np.float32)
    b = np.array([[-0.0, odd[0], np.inf]], dtype=np.float32)
    assert fingerprints([a])[0] == fingerprints([b])[0]
    assert agree(a, b).all()


def test_blank_samples_have_one_fingerprint() -> None:
    exact, _ = fingerprints([np.array([np.zeros(LEAST_BLANK), np.ones(LEAST_BLANK), np.arange(LEAST_BLANK)])])
    assert (exact == BLANK).tolist() == [True, True, False]


def test_several_inputs_count_together_and_nothing_is_written() -> None:
    ids, mask = np.arange(12).reshape(4, 3), np.ones((4, 3), dtype=bool)
    values = np.full((4, 2), -0.0, dtype=np.float32)
    before = values.tobytes()
    exact, _ = fingerprints([ids, mask, values])
    other, _ = fingerprints([ids, ~mask, values])
    assert not (exact == other).any()
    assert values.tobytes() == before


def test_arrays_of_text_complex_numbers_and_no_columns_are_taken() -> None:
    assert len(np.unique(fingerprints([np.array([["a"], ["b"], ["a"]])])[0])) == 2
    assert len(np.unique(fingerprints([np.array([[1 + 2j], [1 - 2j]])])[0])) == 2
    assert fingerprints([np.zeros((3, 0), np.float32)])[0].shape == (3,)

"""Inputs or targets of several arrays are one data set, not a list of batches."""

from typing import Any

import numpy as np
import pytest

from sleuth.adapters import adapter_named
from sleuth.core.contract.kept import Passed
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Parts
from sleuth.probes.lab.gathered_batches import gather
from sleuth.probes.lab.sources import open_source

ADAPTER = adapter_named("numpy")
X, Y, Z = np.arange(80).reshape(40, 2), np.arange(40), np.arange(40) * 1.0


@pytest.mark.parametrize("given", [(X, {"kind": Y, "size": Z}), ({"left": X, "right": Z}, Y), ({"x": X}, {"y": Y}), ([X, Z], Y)])
def test_rows_stay_together(given: Any) -> None:
    batches = list(open_source(given, ADAPTER, "train").batches)
    assert [len(b) for b in batches] == [2, 2]
    for inputs, target in batches:
        values = [
            a
            for part in (inputs, target)
            for a in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else [part])
        ]
        rows = [a[:, 0] // 2 if a.ndim == 2 else a for a in values]
        assert len(rows[0]) in (32, 8)
        assert all(np.array_equal(rows[0], other) for other in rows)


def test_two_batches_stay_two_batches() -> None:
    given = ((X[:20], Y[:20]), (X[20:], Y[20:]))
    assert open_source(given, ADAPTER, "train").batches is given


def test_lengths_that_differ_are_said() -> None:
    with pytest.raises(UnusableInput, match="differ in their number of samples"):
        open_source((X, {"kind": Y[:-1]}), ADAPTER, "train")


def test_several_targets_that_passed_by_come_back_as_they_were() -> None:
    passed = [
        Passed(step, Parts(X[at], {"kind": Y[at], "size": Z[at]}, None)) for step, at in enumerate((slice(20), slice(20, 40)))
    ]
    found = gather(passed, ADAPTER)
    assert found.form is not None
    inputs, target = found.form(found.arrays)
    np.testing.assert_array_equal(inputs, X)
    assert set(target) == {"kind", "size"}
    np.testing.assert_array_equal(target["size"], Z)
    assert found.form((X,))[1] is None

"""Whatever people hand over as data is read, or refused with advice; it never ends in a traceback."""

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from sleuth import Subject, UnusableInput
from sleuth.adapters.torch import ADAPTER
from sleuth.core.observation import Batch, Failure, Observation, Split
from sleuth.core.reading.columns import column_statistics
from sleuth.kernel import measure
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.probe import Lab

X = torch.randn(100, 4)
Y = torch.arange(100) % 3


def read(train: Any, **parts: Any) -> tuple[Lab, list[Observation]]:
    lab = Lab(Subject(nn.Linear(4, 3), train, **parts), ADAPTER, budget_seconds=60)
    return lab, list(reading.run(lab))


def batches(train: Any, **parts: Any) -> list[Batch]:
    return [o for o in read(train, **parts)[1] if isinstance(o, Batch)]


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        yield from zip(X, Y, strict=True)


@dataclass(frozen=True)
class Sample:
    pixels: torch.Tensor
    label: torch.Tensor


Pair = namedtuple("Pair", "x y")
GOOD = {
    "loader": DataLoader(TensorDataset(X, Y), batch_size=32),
    "dataset": TensorDataset(X, Y),
    "iterable dataset": Stream(),
    "loader over a stream": DataLoader(Stream(), batch_size=32),
    "list of batches": list(zip(X.split(32), Y.split(32), strict=True)),
    "arrays": (X, Y),
    "numpy arrays": (X.numpy(), Y.numpy()),
    "list of two arrays": [X, Y],
    "mapping of arrays": {"x": X, "y": Y},
    "mappings": [{"x": x, "labels": y} for x, y in zip(X.split(32), Y.split(32), strict=True)],
    "dataclasses": [Sample(x, y) for x, y in zip(X.split(32), Y.split(32), strict=True)],
    "named tuples": [Pair(x, y) for x, y in zip(X.split(32), Y.split(32), strict=True)],
}


@pytest.mark.parametrize("source", GOOD.values(), ids=GOOD.keys())
def test_every_source_gives_all_its_samples_and_labels(source: Any) -> None:
    lab, seen = read(source)
    assert lab.train.samples == 100
    assert lab.train.complete
    assert sum(map(len, lab.train.labels)) == 100
    assert all(o.features is not None and o.features.shape == (4, 9) for o in seen if isinstance(o, Batch))


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        (None, "give a loader"),
        (iter([(X, Y)]), "can be read only once"),
        (((x, y) for x, y in [(X, Y)]), "can be read only once"),
        ([], "yielded no batch"),
        (DataLoader(TensorDataset(X, Y), batch_size=128, drop_last=True), "drop_last"),
        (DataLoader(TensorDataset(X[:0], Y[:0])), "yielded no batch"),
        ("train.csv", "yields no batches"),
        (lambda: [(X, Y)], "yields no batches"),
        ((X, Y[:50]), "differ in their number of samples"),
        ((X[:0], Y[:0]), "has no samples"),
        ([([[1.0, 2.0]], [0])], "holds no arrays of numbers"),
        ([(np.array([[1.0], [1.0, 2.0]], dtype=object), Y[:2])], "all samples of a batch in one array"),
        ([(torch.empty(4, 4, device="meta"), Y[:4])], "meta device"),
    ],
)
def test_what_cannot_be_read_is_refused_with_advice(source: Any, advice: str) -> None:
    with pytest.raises(UnusableInput, match=advice):
        read(source)


def failing(after: int) -> DataLoader:
    class Broken(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            if index >= after:
                raise ValueError(f"file {index} is damaged")
            return super().__getitem__(index)

    return DataLoader(Broken(X, Y), batch_size=32)


def test_a_loader_that_raises_in_the_middle_is_a_failure_and_what_came_before_counts() -> None:
    lab, seen = read(failing(70))
    failure = next(o for o in seen if isinstance(o, Failure))
    assert failure.phase == "data"
    assert "file 70 is damaged" in failure.message
    assert failure.location is not None
    assert failure.location.file == __file__
    assert len([o for o in seen if isinstance(o, Batch)]) == 2
    assert not lab.train.complete
    assert any("file 70 is damaged" in note for note in lab.notes)


def test_a_loader_that_raises_at_once_is_refused_with_its_own_words() -> None:
    with pytest.raises(UnusableInput, match="file 0 is damaged"):
        read(failing(0))


def test_a_worker_s_traceback_is_reduced_to_what_was_wrong() -> None:
    def give() -> Iterator[Any]:
        yield X, Y
        raise RuntimeError(
            "Caught ValueError in worker 0.\nOriginal Traceback (most recent call last):\n  x\nValueError: no such file"
        )

    class Source:
        def __iter__(self) -> Iterator[Any]:
            return give()

    failure = next(o for o in read(Source())[1] if isinstance(o, Failure))
    assert failure.message.endswith("ValueError: no such file")


def test_an_endless_source_is_left_after_a_bounded_number_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.reading.MOST_UNSIZED_BATCHES", 100)

    class Endless:
        def __iter__(self) -> Iterator[Any]:
            while True:
                yield X[:1], Y[:1]

    lab, _ = read(Endless())
    assert lab.train.samples == 100
    assert not lab.train.complete
    assert "no length" in lab.notes[0]


@pytest.mark.parametrize(
    "inputs",
    [
        torch.randint(0, 50, (8, 12)),
        torch.randint(0, 255, (8, 3, 5, 5), dtype=torch.uint8),
        torch.ones(8, 4, dtype=torch.bool),
        torch.randn(8, 4).half(),
        torch.randn(8, 4).bfloat16(),
        torch.randn(8, 4, dtype=torch.complex64),
        torch.randn(8),
        torch.randn(8, 0),
        {"ids": torch.randint(0, 9, (8, 5)), "mask": torch.ones(8, 5, dtype=torch.bool), "step": torch.tensor(3)},
        {"x": torch.randn(8, 4), "file": np.array(["a"] * 8), "edge_index": torch.zeros(2, 30, dtype=torch.int64)},
        [torch.randn(8, 4), torch.randn(8, 2)],
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, torch.Tensor) else f"{str(x.dtype)[6:]}{tuple(x.shape)}",
)
@pytest.mark.parametrize(
    "target", [torch.zeros(8), torch.zeros(8, 2), torch.tensor(1.0), None, (torch.zeros(8), torch.ones(8, 2))]
)
def test_inputs_and_targets_of_every_kind_are_described(inputs: Any, target: Any) -> None:
    batch = batches([(inputs, target)] * 2)[0]
    assert batch.size == 8
    assert not batch.bad_inputs


def test_targets_need_not_be_as_many_as_inputs() -> None:
    """A flattened language model, a list of boxes, a graph: whether that fits is for the loss to say."""
    lab, seen = read([(torch.randint(0, 9, (4, 6)), torch.randint(0, 9, (24,)))] * 3)
    assert not any(isinstance(o, Failure) for o in seen)
    assert lab.train.labels == []


def test_only_ids_have_no_features() -> None:
    assert batches([(torch.randint(0, 50, (8, 12)), torch.zeros(8))])[0].features is None


def test_a_step_of_the_user_s_own_may_eat_what_sleuth_cannot_look_into() -> None:
    graph = type("Graph", (), {})()
    lab, seen = read([graph, graph], step=lambda model, batch: model(X).sum())
    assert len(lab.train.batches) == 2
    assert seen == []


def test_a_long_set_is_measured_evenly_and_searched_for_nan_everywhere() -> None:
    x = torch.randn(1000, 2)
    x[999, 1] = float("nan")
    seen = batches(DataLoader(TensorDataset(x, torch.zeros(1000)), batch_size=1))
    assert len(seen) <= 256 + 8 + 1
    assert seen[-1].index == 999
    assert seen[-1].bad_inputs == (0,)
    assert np.ptp([b.index for b in seen[:-1]]) > 950


def test_a_large_batch_is_measured_on_a_part_that_includes_what_is_not_finite() -> None:
    x = torch.randn(64, 3, 128, 128)
    x[13, 0, 0, 0] = float("inf")
    batch = batches([(x, torch.zeros(64))])[0]
    assert batch.inputs[0].shape == (64, 3, 128, 128)
    assert batch.inputs[0].statistics.count < x.numel()
    assert batch.inputs[0].statistics.infs == 1
    assert batch.bad_inputs == (13,)


def test_validation_is_read_like_training() -> None:
    lab, seen = read((X, Y), validation=(X[:10], Y[:10]))
    assert lab.validation is not None
    assert lab.validation.samples == 10
    assert {o.split for o in seen if isinstance(o, Batch)} == {Split.TRAIN, Split.VALIDATION}


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(0, 9)),
        elements=st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf]),
    )
)
def test_columns_measured_together_equal_columns_measured_alone(table: np.ndarray) -> None:
    np.testing.assert_allclose(column_statistics(table), measure(list(table)), rtol=1e-9, atol=1e-6)

"""Tensors are measured where they lie: the same values as through NumPy, for every layout and device."""

import numpy as np
import pytest
import torch

from sleuth import kernel
from sleuth.adapters.torch import measuring
from sleuth.adapters.torch.arrays import to_numpy

rng = torch.Generator().manual_seed(0)
NORMAL = torch.randn(30, 40, 5, generator=rng) + 0.3
TENSORS = {
    "float32": NORMAL,
    "float64": NORMAL.double(),
    "float16": NORMAL.half(),
    "bfloat16": NORMAL.bfloat16(),
    "int64": (NORMAL * 10).long(),
    "bool": NORMAL > 0,
    "transposed": NORMAL.transpose(0, 2),
    "sliced": NORMAL[::2, :, 1:],
    "expanded": NORMAL[:, :, :1].expand(-1, -1, 7),
    "channels last": NORMAL[None].to(memory_format=torch.channels_last),
    "empty": NORMAL[:0],
    "scalar": NORMAL.sum(),
    "parameter": torch.nn.Parameter(NORMAL.clone()),
    "with a graph": torch.nn.Parameter(NORMAL.clone()) * 2,
    "masked": NORMAL.masked_fill(NORMAL < 0, -torch.inf),
    "only NaN": torch.full((9,), torch.nan),
    "sparse": torch.eye(5).to_sparse(),
    "negative view": torch.view_as_complex(NORMAL[..., :2].contiguous()).conj().imag,
}


def expected(tensor: torch.Tensor) -> np.ndarray:
    return kernel.measure([to_numpy(tensor)])[0]


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_has_the_statistics_of_its_values(name: str) -> None:
    tensor = TENSORS[name]
    found = measuring.measure([tensor])[0]
    assert found == pytest.approx(expected(tensor), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", TENSORS)
def test_statistics_computed_on_a_device_are_the_same(name: str) -> None:
    tensor = TENSORS[name]
    found = measuring.measure_on_device([tensor])[0]
    assert found == pytest.approx(expected(tensor), rel=1e-6, abs=1e-9)


def test_rows_come_in_the_order_of_the_tensors() -> None:
    meta = torch.empty(3, device="meta")
    table = measuring.measure([NORMAL, meta, TENSORS["sparse"], np.ones(4), NORMAL * 2])
    assert list(table[:, 0]) == [NORMAL.numel(), 0, 25, 4, NORMAL.numel()]


def test_a_tensor_without_memory_of_its_own_is_not_lent() -> None:
    assert not measuring.is_lent(torch.empty(3, device="meta"))
    assert not measuring.is_lent(torch.eye(3).to_sparse())
    assert not measuring.is_lent(TENSORS["negative view"])


def test_a_tensor_inside_a_transform_does_not_break_the_measurement() -> None:
    seen = []
    torch.func.vmap(lambda x: (seen.append(measuring.measure([x])), x)[1])(torch.ones(3, 4))
    assert seen[0].shape == (1, len(kernel.COLUMNS))

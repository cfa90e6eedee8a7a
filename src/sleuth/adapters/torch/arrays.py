"""Tensors as NumPy arrays, and what is known of one at a door."""

from typing import Any

import numpy as np
import torch

from sleuth import kernel
from sleuth.core.observation import ArrayFacts
from sleuth.core.statistics import Statistics

# Dtypes that NumPy lacks.
WIDENED = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def to_numpy(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    tensor = array.detach()
    if tensor.is_meta:
        raise ValueError("a tensor on the meta device has no values")
    if tensor.is_sparse or tensor.is_quantized:
        tensor = tensor.to_dense() if tensor.is_sparse else tensor.dequantize()
    if tensor.dtype in WIDENED:
        tensor = tensor.float()
    return tensor.cpu().resolve_conj().resolve_neg().numpy()


def is_meta(array: Any) -> bool:
    """It has a shape and no values."""
    return isinstance(array, torch.Tensor) and array.is_meta


def array_facts(path: str, array: Any) -> ArrayFacts:
    values = np.zeros(0) if is_meta(array) else to_numpy(array)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and values.dtype.kind != "b" else float(bool(finite.size))
    return ArrayFacts(
        path=path,
        shape=tuple(array.shape),
        dtype=str(array.dtype).removeprefix("torch."),
        statistics=Statistics.from_row(kernel.measure([values])[0]),
        whole_share=whole,
        device=str(array.device) if isinstance(array, torch.Tensor) else "cpu",
    )

"""The PyTorch adapter: each capability is filled in by the module of that name."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from sleuth import kernel
from sleuth.adapters.torch import architecture, sources, state
from sleuth.adapters.torch.bench import open_bench
from sleuth.core.adapter import Adapter, Bench, Describes, Steps
from sleuth.core.observation import Architecture, Settings
from sleuth.core.subject import Subject


class TorchAdapter(Adapter, Describes, Steps):
    name = "torch"

    def claims(self, thing: Any) -> bool:
        return isinstance(thing, torch.nn.Module)

    def is_array(self, thing: Any) -> bool:
        return isinstance(thing, torch.Tensor | np.ndarray)

    def values(self, array: Any) -> np.ndarray:
        return to_numpy(array)

    def like(self, values: np.ndarray, array: Any) -> Any:
        if isinstance(array, np.ndarray):
            return values.astype(array.dtype)
        return torch.as_tensor(values).to(dtype=array.dtype, device=array.device)

    def dtype(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def device(self, array: Any) -> str:
        return str(array.device) if isinstance(array, torch.Tensor) else "cpu"

    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        return kernel.measure([to_numpy(a) for a in arrays])

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return sources.batches(source, batch_size)

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return architecture.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return architecture.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)


def to_numpy(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    tensor = array.detach()
    if tensor.is_meta:
        raise ValueError("a tensor on the meta device has no values")
    if tensor.is_sparse or tensor.is_quantized:
        tensor = tensor.to_dense() if tensor.is_sparse else tensor.dequantize()
    if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        tensor = tensor.float()
    return tensor.cpu().resolve_conj().resolve_neg().numpy()

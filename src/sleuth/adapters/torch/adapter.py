"""The PyTorch adapter: each capability is filled in by the module of that name."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from sleuth import kernel
from sleuth.adapters.torch import architecture, cuts, sources, state
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.bench import TorchBench, open_bench
from sleuth.core.adapter import Adapter, Bench, Describes, Orders, Rows, Steps, Traces
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection


class TorchAdapter(Adapter, Describes, Orders, Steps, Traces):
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

    def rows(self, source: Any) -> Rows | None:
        return sources.rows(source)

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return architecture.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return architecture.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        return cuts.connection(bench, batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return next((o for o in bench.observe(batch, 0) if isinstance(o, Origin)), None)

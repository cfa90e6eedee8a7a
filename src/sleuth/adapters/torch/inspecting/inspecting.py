"""Looking at a model of torch: each method is filled in by the module of that name.

They are imported where they are called: a watch does not pay for what only instruments need.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from sleuth.adapters.torch.state import preserved
from sleuth.core.contract.adapter import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class TorchInspects(Inspects, Routes, Shows, Credits, Attends):
    def parts(self, model: Any) -> tuple[Part, ...]:
        from sleuth.adapters.torch.inspecting.parts import parts

        return parts(model)

    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        tensor = next((p for p in (*model.parameters(), *model.buffers()) if p.is_floating_point()), torch.empty(0))
        wanted = tensor.dtype if dtype is None else getattr(torch, dtype, None)
        if not isinstance(wanted, torch.dtype):
            raise UnusableInput(f"dtype={dtype!r} is not a type of torch's; give one such as 'float32' or 'int64'.")
        if not wanted.is_floating_point or tensor.is_meta:
            return torch.zeros(shape, dtype=wanted, device=tensor.device)
        return torch.randn(shape, generator=torch.Generator().manual_seed(SEED)).to(wanted).to(tensor.device)

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return preserved(Subject(torch.nn.Module(), source))

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        from sleuth.adapters.torch.inspecting.forward_pass import passage

        return passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        from sleuth.adapters.torch.inspecting.operation_graph import route

        return route(model, inputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        from sleuth.adapters.torch.inspecting.maps import kernels

        return kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        from sleuth.adapters.torch.inspecting.maps import maps

        return maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        from sleuth.adapters.torch.inspecting.class_activation import class_activation

        return class_activation(model, inputs, layer, target)

    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        from sleuth.adapters.torch.inspecting.attention import attention

        return attention(model, inputs)

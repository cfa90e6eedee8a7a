"""What the instruments ask of a model of torch: the modules beside this one answer."""

from contextlib import AbstractContextManager
from typing import Any

import torch

from sleuth.adapters.common.inspecting.by_module import InspectsByModule
from sleuth.adapters.torch.state import preserved
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class TorchInspects(InspectsByModule):
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

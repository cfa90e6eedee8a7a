"""A model's weights as they were when its training began."""

import torch
from torch import nn
from torch.nn.parameter import is_lazy

# Larger models are not kept, nor are they called once more when all is over.
MOST_BYTES = 32 << 20


def is_small(model: nn.Module) -> bool:
    tensors = (*model.parameters(), *model.buffers())
    return sum(t.nbytes for t in tensors if not is_lazy(t)) <= MOST_BYTES


def weights_of(model: nn.Module) -> dict[str, torch.Tensor] | None:
    """In the host's memory. None: too large to be kept, or not made yet."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    if not is_small(model) or any(is_lazy(t) for t in tensors.values()):
        return None
    return {name: t.detach().to("cpu", copy=True) for name, t in tensors.items()}

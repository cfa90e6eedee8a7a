"""What an exception in forward, loss or backward really says."""

from types import TracebackType

from torch import nn

from sleuth.adapters.torch.place import location_of
from sleuth.core.observation import Failure


def explain(error: Exception, phase: str, model: nn.Module) -> Failure:
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        layer=_layer(error.__traceback__, model),
        location=location_of(error.__traceback__),
    )


def _layer(trace: TracebackType | None, model: nn.Module) -> str | None:
    """The innermost module of the model whose forward was running."""
    names = {id(module): path for path, module in model.named_modules()}
    layer = None
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and id(owner) in names:
            layer = names[id(owner)] or layer
        trace = trace.tb_next
    return layer

"""What an exception in forward, loss or backward of a hand-written model really says."""

from types import TracebackType
from typing import Any

from sleuth.adapters.common.manual_loop import error_message
from sleuth.adapters.numpy.model_parts import layers
from sleuth.core.observation import Failure


def explain(error: Exception, phase: str, model: Any) -> Failure:
    return error_message.explain(error, phase, layer_of(error.__traceback__, model))


def layer_of(trace: TracebackType | None, model: Any) -> str | None:
    """The innermost layer of the model whose method was running."""
    names = {id(layer): path for path, layer in layers(model)}
    found = None
    while trace is not None:
        found = names.get(id(trace.tb_frame.f_locals.get("self")), found)
        trace = trace.tb_next
    return found

"""What an exception that leaves a watched loop says. Only what is known is told: a loop may end by an exception on purpose."""

from dataclasses import replace
from types import TracebackType

from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.failure import explain
from sleuth.adapters.torch.place import TORCH, is_users
from sleuth.core.location import Location, locate
from sleuth.core.observation import Failure


def explain_leaving(error: BaseException, model: nn.Module, in_backward: bool) -> Failure | None:
    if not isinstance(error, Exception):
        return None
    phase = "backward" if in_backward else phase_of(error.__traceback__, model)
    # Where nothing of torch was running, only torch's own messages are known: a KeyError of the loop is the user's affair.
    if phase is None and not isinstance(error, RuntimeError):
        return None
    failure = explain(error, phase or "loss", model)
    if failure.kind == "other":
        return None
    return failure if failure.location else replace(failure, location=_innermost(error.__traceback__))


def phase_of(trace: TracebackType | None, model: nn.Module) -> str | None:
    found = None
    modules = set(map(id, model.modules()))
    while trace is not None:
        frame = trace.tb_frame
        owner, inside = frame.f_locals.get("self"), frame.f_code.co_filename.startswith(TORCH)
        if id(owner) in modules:
            return "forward"
        if isinstance(owner, Optimizer) and frame.f_code.co_name == "step":
            return "step"
        if inside and f"{TORCH}/utils/data" in frame.f_code.co_filename.replace("\\", "/"):
            return "data"
        if inside and f"{TORCH}/autograd/" in frame.f_code.co_filename.replace("\\", "/"):
            return "backward"
        if inside and {"input", "target"} <= frame.f_locals.keys():
            found = "loss"
        trace = trace.tb_next
    return found


def _innermost(trace: TracebackType | None) -> Location | None:
    found = None
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = locate(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found

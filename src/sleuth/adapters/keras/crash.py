"""What is behind an exception that ended a training or a script."""

from typing import Any

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.checkpoint import read_misfit
from sleuth.adapters.keras.failure import read
from sleuth.core.observation import Crash, Failure, Observation
from sleuth.core.runtime.place import innermost


def explain(error: BaseException, model: Any = None, steps: int = 0) -> list[Observation]:
    if not isinstance(error, Exception):
        return []
    misfit = read_misfit(error)
    message, layer, (kind, expected, got, advice) = read(error, model)
    place = innermost(error.__traceback__)
    first = message.splitlines()[0] if message else ""
    crash = Crash(steps, type(error).__name__, first, "forward" if kind != "other" else None, place)
    if misfit is not None:
        return [misfit, Crash(steps, type(error).__name__, first, None, place)]
    if kind != "other":
        told = Failure("forward", type(error).__name__, message, kind, layer, expected, got, advice, place)
        return [told, crash]
    return _torchs(error) or [crash]


def _torchs(error: BaseException) -> list[Observation]:
    if backend.name() != "torch":
        return []
    from sleuth.adapters.torch.failures.crash import Known, explain_crash

    return explain_crash(error, Known())

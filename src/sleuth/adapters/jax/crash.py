"""What ended the user's own code, where it is something that JAX says."""

import re
from types import TracebackType

from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.refused_state import misfit
from sleuth.core.observation import Observation, OutOfMemory
from sleuth.core.runtime.place import innermost

BACKWARD = re.compile(r"[Gg]radient only defined for scalar|Reverse-mode differentiation|grad requires real|custom_vjp")
MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory")
ASKED = re.compile(r"allocat\w+ (?P<bytes>\d+)(?: bytes)?")


def crash(error: BaseException, steps: int) -> list[Observation]:
    if MEMORY.search(str(error)) and not isinstance(error, MemoryError):
        asked = ASKED.search(str(error))
        return [OutOfMemory(steps, "cpu", int(asked["bytes"]) if asked else None, location=innermost(error.__traceback__))]
    if not isinstance(error, Exception):
        return []
    if (refused := misfit(error)) is not None:
        return [refused]
    phase = (
        "backward" if BACKWARD.search(str(error)) else "forward" if _is_jax(error) or _in_jax(error.__traceback__) else "script"
    )
    told = explain(error, phase, place=innermost(error.__traceback__))
    return [] if told.kind == "other" or phase == "script" else [told]


def _is_jax(error: Exception) -> bool:
    """JAX takes its own frames out of a traceback, and notes that it did."""
    return type(error).__module__.startswith("jax") or any("JAX" in note for note in getattr(error, "__notes__", ()))


def _in_jax(trace: TracebackType | None) -> bool:
    """Did it come out of a call of JAX, or of a library on top of it?"""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if name.split(".")[0] in ("jax", "flax", "equinox", "optax"):
            return True
        trace = trace.tb_next
    return False

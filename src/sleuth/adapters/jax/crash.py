"""What ended the user's own code, where it is something that JAX says."""

import re
from types import TracebackType
from typing import Any

import jax

from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.forms import loaded, path_of
from sleuth.core.observation import Entry, Misfit, Observation, OutOfMemory
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


def misfit(error: Exception) -> Misfit | None:
    """A state that a model of Flax NNX refused. Where `nnx.update(model, state)` raised: the names and shapes on either side."""
    given = _given(error)
    if given is None:
        return None
    model, state = given
    nnx: Any = loaded("flax.nnx")
    has, gets = _entries(nnx.state(model)), _entries(state)
    both = [name for name in has if name in gets]
    return Misfit(
        "names",
        type(model).__name__,
        missing=tuple(entry for name, entry in has.items() if name not in gets),
        unexpected=tuple(entry for name, entry in gets.items() if name not in has),
        reshaped=tuple((gets[name], has[name]) for name in both if gets[name].shape != has[name].shape),
        fitting=sum(gets[name].shape == has[name].shape for name in both),
        location=innermost(error.__traceback__),
    )


def _given(error: Exception) -> tuple[Any, Any] | None:
    nnx, trace = loaded("flax.nnx"), error.__traceback__
    while nnx is not None and trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "update" and str(frame.f_globals.get("__name__", "")).startswith("flax.nnx"):
            model, state = frame.f_locals.get("node"), frame.f_locals.get("state")
            if isinstance(model, nnx.Module) and state is not None:
                return model, state
        trace = trace.tb_next
    return None


def _entries(state: Any) -> dict[str, Entry]:
    flat = jax.tree_util.tree_flatten_with_path(state)[0]
    return {path_of(keys): Entry(path_of(keys), tuple(getattr(leaf, "shape", ()))) for keys, leaf in flat}

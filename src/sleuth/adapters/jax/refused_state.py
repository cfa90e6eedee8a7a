"""A state that a model of Flax NNX refuses."""

from typing import Any

import jax

from sleuth.adapters.jax.forms import loaded, path_of
from sleuth.core.observation import Entry, Misfit
from sleuth.core.runtime.place import innermost


def misfit(error: Exception) -> Misfit | None:
    """Where `nnx.update(model, state)` raised: the names and shapes on either side."""
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

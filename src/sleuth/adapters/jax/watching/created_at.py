"""Where the user made an optimiser or a schedule of optax, which optimiser a step applies, and for which model of Flax NNX an
optimiser was made: a compiled step is given their arrays, and never the models themselves."""

import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, FunctionType
from typing import Any

import jax

from sleuth.adapters.jax.optimising import _cells, makers, transformation
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.listening.patches import Failed, attempt
from sleuth.core.location import Location
from sleuth.core.runtime.place import is_users

# Update functions and schedules → the user's line that made them. Nothing is held by this.
PLACES: "weakref.WeakKeyDictionary[Any, Location]" = weakref.WeakKeyDictionary()
# Models of Flax NNX together with their optimisers; nothing is held by this.
MODELS: list[tuple[Any, Any]] = []
MOST_MODELS = 64
# Frames between a library's call of apply_updates and the user's function that holds the optimiser.
MOST_FRAMES = 12


def make_maker(plain: Callable[..., Any], failed: Failed) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        attempt(failed, _note_place, result)
        return result

    return made


def _note_place(made: Any) -> None:
    function = getattr(made, "update", made)
    if isinstance(function, FunctionType) and function not in PLACES and (place := users_line()) is not None:
        PLACES[function] = place


def makers_in(module: Any) -> list[str]:
    """Functions of optax that return an optimiser or a schedule."""
    found = []
    for name, thing in vars(module).items():
        if name.startswith("_") or not inspect.isfunction(thing) or not thing.__module__.startswith("optax"):
            continue
        returns = str(thing.__annotations__.get("return", ""))
        if "GradientTransformation" in returns or thing.__module__.startswith("optax.schedules"):
            found.append(name)
    return found


def made_at(optimiser: Any) -> Location | None:
    tx = transformation(optimiser)
    return None if tx is None else PLACES.get(tx.update)


def scheduled_at(optimiser: Any) -> Location | None:
    """Where the schedule of its rate was made; where it is a function of the user's own, where that begins."""
    tx = transformation(optimiser)
    found = [] if tx is None else list(_schedules(tx))
    if len(found) != 1:
        return None
    code = found[0].__code__
    if found[0] in PLACES:
        return PLACES[found[0]]
    from sleuth.core.location import locate

    return locate(code.co_filename, code.co_firstlineno) if is_users(code.co_filename) else None


def _schedules(tx: Any) -> Iterator[FunctionType]:
    for maker, cells in makers(tx.update):
        if maker == "scale_by_schedule":
            yield from _behind(cells.get("step_size_fn"))


def _behind(schedule: Any) -> Iterator[FunctionType]:
    """optax turns the sign of a rate by a function of its own around the user's."""
    if not isinstance(schedule, FunctionType):
        return
    inner = [value for value in _cells(schedule).values() if isinstance(value, FunctionType)]
    if schedule not in PLACES and schedule.__module__.startswith("optax") and len(inner) == 1:
        yield from _behind(inner[0])
    else:
        yield schedule


def optimiser_in_use() -> Any:
    """Of whoever applies updates now: what a library's own object holds, or the only one that the user's function names."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None:
            return None
        held = frame.f_locals.get("self")
        tx = getattr(held, "tx", None)
        if tx is not None and transformation(tx) is not None:
            return tx
        if is_users(frame.f_code.co_filename):
            named = {id(tx.update): tx for tx in _named(frame)}
            if named:
                return next(iter(named.values())) if len(named) == 1 else None
        frame = frame.f_back
    return None


def _named(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    seen = [*frame.f_locals.values(), *(frame.f_globals[n] for n in code.co_names if n in frame.f_globals)]
    held = [value for thing in seen for value in _attributes(thing)]
    for thing in (*seen, *held):
        if isinstance(thing, tuple) and transformation(thing) is not None:
            yield thing


def _attributes(thing: Any) -> list[Any]:
    """Of an object of the user's own."""
    if type(thing).__module__.split(".")[0] in ("builtins", "jax", "jaxlib", "numpy", "optax", "flax", "equinox"):
        return []
    found = getattr(thing, "__dict__", None)
    return list(found.values()) if isinstance(found, dict) and not isinstance(thing, type) and not inspect.ismodule(thing) else []


def make_init(plain: Callable[..., None], failed: Failed) -> Callable[..., None]:
    """Of nnx.Optimizer."""

    def init(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, model, *args, **kwargs)
        attempt(failed, _note_model, model, self)

    return init


def _note_model(model: Any, optimiser: Any) -> None:
    with suppress(TypeError):  # not everything can be held so
        MODELS.append((weakref.ref(model), weakref.ref(optimiser)))
    del MODELS[:-MOST_MODELS]


def model_of(weights: list[Any] | None) -> tuple[Any, Any] | None:
    """The model that holds all of these very arrays, and its optimiser."""
    if not weights:
        return None
    own = {id(w) for w in weights}
    for model, optimiser in reversed(MODELS):
        found, its = model(), optimiser()
        if found is not None and own <= {id(leaf) for leaf in jax.tree.leaves(found)}:
            return found, its
    return None

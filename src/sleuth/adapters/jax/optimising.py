"""Reading an optax optimiser. Its settings live in the closures of its functions; those are read and never written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any

import numpy as np

from sleuth.adapters.common.schedule import highest

# Function that makes an optax transformation → the optimiser as it is usually called, and the words for what its closure holds.
MOMENTS = {"b1": "beta1", "b2": "beta2", "eps": "eps"}
KINDS = {
    "scale_by_adam": ("Adam", MOMENTS),
    "scale_by_adamax": ("Adamax", MOMENTS),
    "scale_by_lion": ("Lion", MOMENTS),
    "scale_by_belief": ("AdaBelief", MOMENTS),
    "scale_by_rms": ("RMSprop", {"decay": "alpha", "eps": "eps"}),
    "scale_by_rss": ("Adagrad", {"eps": "eps"}),
    "scale_by_adadelta": ("Adadelta", {"rho": "rho", "eps": "eps"}),
    "trace": ("SGD", {"decay": "momentum", "nesterov": "nesterov"}),
}
NAMED = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "rmsprop": "RMSprop", "lion": "Lion", "adagrad": "Adagrad"}
DEPTH = 12


@dataclass(frozen=True)
class Recipe:
    """What could be read; None: it is not there, or not to be told."""

    name: str | None = None
    lr: float | None = None
    peak: float | None = None  # of a schedule
    weight_decay: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


def transformation(optimiser: Any) -> Any:
    """The optax part of an nnx.Optimizer, or what was given, if it is one."""
    found = getattr(optimiser, "tx", optimiser)
    return found if callable(getattr(found, "update", None)) and callable(getattr(found, "init", None)) else None


def read(tx: Any, state: Any = None) -> Recipe:
    name: str | None = None
    options: dict[str, Any] = {}
    rates: list[tuple[float | None, float | None]] = []
    decays: list[Any] = []
    for maker, cells in makers(tx.update):
        if maker in KINDS:
            name, words = KINDS[maker]
            options |= {word: cells[cell] for cell, word in words.items() if isinstance(cells.get(cell), int | float | bool)}
        elif maker == "scale":
            rates.append((_negative(cells.get("step_size")), None))
        elif maker == "scale_by_schedule":
            rates.append(_scheduled(cells.get("step_size_fn")))
        elif maker == "add_decayed_weights":
            decays.append(cells.get("weight_decay"))
        elif "inner_factory" in cells:  # of inject_hyperparams
            name = NAMED.get(getattr(cells["inner_factory"], "__name__", ""))
    given = injected(state)
    lr, peak = rates[0] if len(rates) == 1 else (None, None)
    lr = _number(given["learning_rate"]) if "learning_rate" in given else lr
    decay = _number(given.get("weight_decay", decays[0] if len(decays) == 1 else None))
    name = name or ("SGD" if lr is not None else None)
    name = "AdamW" if name == "Adam" and decay is not None else name
    return Recipe(name, lr, peak, decay, _worded(options, peak, decay))


def rate_of(tx: Any) -> Callable[[int], float | None] | None:
    """The rate of each step, where it is told in one place: a number, or a schedule."""
    found: list[Any] = []
    for maker, cells in makers(tx.update):
        if maker in ("scale", "scale_by_schedule"):
            found.append(cells.get("step_size" if maker == "scale" else "step_size_fn"))
    if len(found) != 1:
        return None
    rate = found[0]
    if not callable(rate):
        return lambda step: _negative(rate)

    def scheduled(step: int) -> float | None:
        try:
            return _negative(rate(step))
        except Exception:  # a schedule of the user's own
            return None

    return scheduled


def _worded(options: dict[str, Any], peak: float | None, decay: float | None) -> dict[str, Any]:
    if "beta1" in options and "beta2" in options:
        options = {"betas": (options.pop("beta1"), options.pop("beta2")), **options}
    return options | {word: value for word, value in (("initial_lr", peak), ("weight_decay", decay)) if value is not None}


def injected(state: Any) -> dict[str, Any]:
    """The settings that optax.inject_hyperparams keeps in the state of the optimiser."""
    found = getattr(state, "hyperparams", None)
    return dict(found) if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def _negative(value: Any) -> float | None:
    number = _number(value)
    # Minus nothing is nothing.
    return None if number is None else -number or 0.0


def _scheduled(schedule: Any) -> tuple[float | None, float | None]:
    """The rate at the first step, and the highest that the schedule comes to."""
    peak = highest(lambda step: -float(schedule(step)))
    return (None, None) if peak is None else (-float(schedule(0)) or 0.0, peak)


def makers(function: Any, depth: int = DEPTH) -> Iterator[tuple[str, dict[str, Any]]]:
    """(the function that made it, the contents of its closure) for every update function inside this one, in order."""
    if depth < 0 or not isinstance(function, FunctionType):
        return
    cells = _cells(function)
    maker = function.__qualname__.partition(".")[0]
    if function.__module__.startswith("optax") and function.__name__ in ("update_fn", "update"):
        yield maker, cells
    for value in cells.values():
        for inner in _inner(value):
            yield from makers(inner, depth - 1)


def _inner(value: Any) -> list[Any]:
    """The update functions behind the contents of a cell."""
    if callable(getattr(value, "update", None)) and callable(getattr(value, "init", None)):
        return [value.update]
    if isinstance(value, tuple | list):
        return [inner for child in value for inner in _inner(child)]
    if isinstance(value, dict):
        return [inner for child in value.values() for inner in _inner(child)]
    return [value] if isinstance(value, FunctionType) and value.__name__ in ("update_fn", "update") else []


def _cells(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


def changed(update: Callable[..., Any], lr: Any, decay: Any, depth: int = DEPTH) -> Callable[..., Any]:
    """The same update function at the rate `lr`, and with every weight decay times `decay`: a copy, cell by cell.

    None leaves the rate to the optimiser, or to its schedule.
    """
    if depth < 0 or not isinstance(update, FunctionType) or not update.__closure__:
        return update
    maker = update.__qualname__.partition(".")[0]
    fresh = []
    for name, value in _cells(update).items():
        if (maker, name) == ("add_decayed_weights", "weight_decay") and not callable(value):
            value = value * decay
        elif (maker, name) == ("scale", "step_size") and lr is not None:
            value = -lr
        elif (maker, name) == ("scale_by_schedule", "step_size_fn") and lr is not None:
            value = lambda count: -lr  # noqa: E731
        else:
            value = _renewed(value, lr, decay, depth)
        fresh.append(CellType(value))
    copy = FunctionType(update.__code__, update.__globals__, update.__name__, update.__defaults__, tuple(fresh))
    copy.__kwdefaults__, copy.__qualname__ = update.__kwdefaults__, update.__qualname__
    return copy


def _renewed(value: Any, lr: Any, decay: Any, depth: int) -> Any:
    if callable(getattr(value, "update", None)) and hasattr(value, "_replace"):
        return value._replace(update=changed(value.update, lr, decay, depth - 1))
    if type(value) in (tuple, list):
        return type(value)(_renewed(child, lr, decay, depth) for child in value)
    if type(value) is dict:
        return {key: _renewed(child, lr, decay, depth) for key, child in value.items()}
    if isinstance(value, FunctionType) and value.__name__ in ("update_fn", "update"):
        return changed(value, lr, decay, depth - 1)
    return value

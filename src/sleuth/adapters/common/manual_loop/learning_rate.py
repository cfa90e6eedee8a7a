"""Where a hand-written optimiser or model keeps its learning rate and its other numbers."""

from dataclasses import dataclass
from numbers import Real
from types import SimpleNamespace
from typing import Any

from sleuth.adapters.common.manual_loop.calling import default_of

RATES = ("lr", "learning_rate")
# Of an optimiser alone: a model's own `reg` may also be part of its loss.
DECAYS = ("weight_decay", "wd", "l2")
# Used only where the user named no rate: plain descent on normalised data moves visibly and rarely blows up.
STAND_IN_RATE = 0.1


@dataclass(frozen=True)
class Rate:
    """Where the learning rate, or another number, is kept."""

    holder: Any
    attribute: str

    def get(self) -> float:
        return float(getattr(self.holder, self.attribute))

    def set(self, value: float) -> None:
        setattr(self.holder, self.attribute, value)


def find_rate(model: Any, optimiser: Any) -> Rate | None:
    """A number given as optimiser, `.lr` of it or of the model, or the default of update() or train_step()."""
    if is_number(optimiser):
        return Rate(SimpleNamespace(lr=float(optimiser)), "lr")
    for holder in (optimiser, model):
        for name in RATES:
            if is_number(getattr(holder, name, None)):
                return Rate(holder, name)
    for function in (getattr(model, name, None) for name in ("update", "train_step")):
        if callable(function) and is_number(value := default_of(function, "rate")):
            return Rate(SimpleNamespace(lr=float(value)), "lr")
    return None


def find_decay(optimiser: Any) -> Rate | None:
    return next((Rate(optimiser, name) for name in DECAYS if is_number(getattr(optimiser, name, None))), None)


def is_number(thing: Any) -> bool:
    return isinstance(thing, Real) and not isinstance(thing, bool)


def options(optimiser: Any) -> dict[str, Any]:
    values = getattr(optimiser, "__dict__", {})
    return {k: v for k, v in values.items() if isinstance(v, int | float | bool | str | tuple) and k not in RATES}

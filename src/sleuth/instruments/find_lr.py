"""A learning rate to start with: the loss while the rate rises from step to step (Smith 2017)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput
from sleuth.instruments.columns import BLUE, GREEN, GREY, ORANGE, number
from sleuth.instruments.laboratory import MOST_BATCHES, Training, opened
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result, new_figure
from sleuth.probes.lab.rates import HIGHEST, LOWEST, STEPS, smooth, sweep, use_working_rate

# Fewer steps make no curve.
LEAST_STEPS = 10


@dataclass(frozen=True)
class LearningRates(Result):
    rates: tuple[float, ...]
    losses: tuple[float, ...]  # each before the step at its rate, set against the same batch before the first step
    smoothed: tuple[float, ...]
    suggested: float | None
    reason: str
    current: float | None  # the optimiser's own; None: none was given, and Adam stood in
    optimiser: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return plain(self)

    def __str__(self) -> str:
        now = f"; the optimiser is set to {number(self.current)}" if self.current is not None else ""
        if self.suggested is None:
            return f"No learning rate can be suggested: {self.reason}{now}."
        lines = [f"Suggested learning rate: {self.suggested:.2g} ({self.reason}){now}."]
        return "\n".join((*lines, f"{len(self.rates)} steps from {self.rates[0]:.1g} to {self.rates[-1]:.1g}", *self.notes))

    def plot(self) -> Any:
        figure = new_figure(6.4, 3.8)
        axes = figure.add_subplot()
        axes.plot(self.rates, self.losses, color=GREY, alpha=0.5, linewidth=0.8, label="loss")
        axes.plot(self.rates, self.smoothed, color=BLUE, label="smoothed")
        for rate, colour, label in ((self.suggested, GREEN, "suggested"), (self.current, ORANGE, "now")):
            if rate:
                axes.axvline(rate, color=colour, linestyle="--", label=f"{label}: {rate:.2g}")
        axes.set_xscale("log")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("loss")
        # Where it blows up the rest would be a flat line.
        low, start = min(self.losses), self.losses[0]
        axes.set_ylim(low - 0.1 * abs(start - low) - 1e-12, start + max(abs(start - low), 1e-12))
        axes.set_title("The loss while the learning rate rises")
        axes.legend(frameon=False, fontsize=8)
        return figure


def find_lr(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    steps: int = STEPS,
    lowest: float = LOWEST,
    highest: float = HIGHEST,
    progress: bool | None = None,
) -> LearningRates:
    """Trains a copy for some steps while the rate rises, and suggests one. Model, optimiser and random states stay as they are.

    Without `optimizer` it is tried with Adam. Rates of several parameter groups keep their proportions.
    """
    if steps < LEAST_STEPS or not 0 < lowest < highest:
        raise UnusableInput(
            f"steps={steps} must be at least {LEAST_STEPS}, and lowest={lowest:g} between 0 and highest={highest:g}."
        )
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, min(steps, MOST_BATCHES), loss=True) as lab:
        current = use_working_rate(lab)
        taken = 0

        def stop() -> bool:
            nonlocal taken
            taken += 1
            lab.progress(f"Step {taken} of {steps}")
            return False

        found = sweep(lab, lab.train.batches, stop, steps, lowest=lowest, highest=highest)
        if not found.losses:
            raise UnusableInput("the loss is not a finite number at the very first step: sleuth.examine finds out why.")
        used = "Adam stood in for an optimiser" if current is None else ""
        return LearningRates(
            found.rates,
            found.losses,
            tuple(np.asarray(smooth(found.losses)).tolist()),
            found.suggested,
            found.reason,
            current,
            type(lab.subject.optimizer).__name__ if current is not None else "Adam",
            (*([used] if used else []), *lab.notes),
        )

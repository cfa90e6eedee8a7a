"""Can the model learn one batch by heart? The single most useful test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sleuth.checks.batch.cannot_overfit_one_batch import ALMOST, HALF, LEARNED
from sleuth.core.errors import UnusableInput
from sleuth.core.trial import Ablation, Overfit
from sleuth.instruments.columns import BLUE, GREY, ORANGE, number
from sleuth.instruments.laboratory import Training, opened
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result, new_figure
from sleuth.probes.batch.overfit import overfit

# More of it would not be learned by heart in the steps that are taken.
SOME_BATCHES = 4
WORDS = {
    "learned": "the batch is known by heart: model, loss and update work",
    "almost": "the batch is almost known by heart; a little more than it should be is left",
    "half": "only part of the batch was learned: look at the width of the model, at dropout and at the loss",
    "not": "the batch was not learned: model, loss or update are broken; sleuth.examine looks for the reason",
    "unclear": "how low this loss can get is not known, so this cannot be judged",
}


@dataclass(frozen=True)
class OverfitBatch(Result):
    """`left` is the share of the loss above its floor that remains: the verdict's measure."""

    verdict: str  # "learned", "almost", "half", "not", "unclear"
    left: float
    floor: float | None
    losses: tuple[float, ...]  # as you set it up
    rate: float | None
    tuned_losses: tuple[float, ...]  # at a rate that was looked for; empty: not needed
    tuned_rate: float | None
    blank_losses: tuple[float, ...]  # with the same input for every sample
    samples: int
    rate_is_wrong: bool  # only the tuned rate gets there
    notes: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        return self.verdict == "learned"

    def to_dict(self) -> dict[str, Any]:
        return plain(self)

    def __str__(self) -> str:
        best = self.tuned_losses if self.rate_is_wrong or (self.tuned_losses and self.verdict != "learned") else self.losses
        said = f"{WORDS[self.verdict]} ({best[0]:.3g} → {min(best[-5:]):.3g} in {len(best)} steps on {self.samples} samples)"
        lines = [f"{self.verdict}: {said}"]
        if self.rate_is_wrong:
            lines.append(
                f"Only with a learning rate of {number(self.tuned_rate)} instead of {number(self.rate)}: the rate is to blame."
            )
        if self.floor:
            lines.append(f"The loss cannot get below {number(self.floor)}.")
        return "\n".join((*lines, *self.notes))

    def plot(self) -> Any:
        figure = new_figure(6.4, 3.6)
        axes = figure.add_subplot()
        own = "your rate" if self.rate is None else f"your rate, {number(self.rate)}"
        curves = ((self.losses, BLUE, own), (self.tuned_losses, ORANGE, f"rate {number(self.tuned_rate)}"))
        for losses, colour, label in (*curves, (self.blank_losses, GREY, "the same input for all samples")):
            if losses:
                axes.plot(range(1, len(losses) + 1), losses, color=colour, label=label, linewidth=1.2)
        if self.floor == 0 and min((*self.losses, *self.tuned_losses)) > 0:
            axes.set_yscale("log")
            axes.set_ylim(bottom=min((*self.losses, *self.tuned_losses)) / 2)
        elif self.floor is not None:
            axes.axhline(self.floor, color="black", linestyle=":", linewidth=1, label="floor")
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.set_title(f"One batch of {self.samples} samples: {self.verdict}")
        axes.legend(frameon=False, fontsize=8)
        return figure


def overfit_batch(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    progress: bool | None = None,
) -> OverfitBatch:
    """Trains a copy on a few samples of one batch until they are known by heart: as you set it up, then at a rate that is looked
    for where that fails, and once more without telling the inputs apart."""
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, SOME_BATCHES, loss=True) as lab:
        lab.progress("Memorising one batch")
        seen = list(overfit.run(lab))
        trial = next((o for o in seen if isinstance(o, Overfit)), None)
        if trial is None:
            raise UnusableInput("one batch could not be trained on.")
        blank = next((o.blank_losses for o in seen if isinstance(o, Ablation)), ())
        return _result(trial, blank, tuple(lab.notes))


def _result(trial: Overfit, blank: tuple[float, ...], notes: tuple[str, ...]) -> OverfitBatch:
    own = trial.remaining(trial.losses)
    tuned = trial.remaining(trial.tuned_losses) if trial.tuned_losses else own
    left = min(own, tuned)
    enough = ALMOST if trial.dense else LEARNED
    return OverfitBatch(
        verdict=_verdict(left, enough) if trial.floor_known else "unclear",
        left=left,
        floor=trial.floor if trial.floor_known else None,
        losses=trial.losses,
        rate=trial.lr,
        tuned_losses=trial.tuned_losses,
        tuned_rate=trial.tuned_lr,
        blank_losses=tuple(blank),
        samples=trial.samples,
        rate_is_wrong=trial.floor_known and tuned < enough <= own,
        notes=notes,
    )


def _verdict(left: float, enough: float) -> str:
    if left < enough:
        return "learned"
    return "almost" if left <= ALMOST else "half" if left <= HALF else "not"

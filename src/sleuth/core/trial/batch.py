"""What was measured with one batch. One frozen class a probe."""

from dataclasses import dataclass

from sleuth.core.trial.kind import Trial

# A run shorter than this ended because the loss blew up.
LEAST_STEPS = 30


@dataclass(frozen=True)
class StepEffect(Trial):
    """One optimiser step on a copy."""

    parameters: int
    unchanged: tuple[str, ...]
    gradients_zero: tuple[str, ...]
    loss_before: float
    loss_after: float
    relative_change: float  # ‖Δw‖ / ‖w‖ over everything the optimiser holds


@dataclass(frozen=True)
class Overfit(Trial):
    """Training on one batch alone: as the user set it up, and once more at a rate found by a range test."""

    samples: int
    steps: int
    floor: float
    floor_reason: str
    losses: tuple[float, ...]
    lr: float | None
    tuned_lr: float | None = None
    tuned_losses: tuple[float, ...] = ()
    floor_known: bool = True  # False: nobody can say how low this loss may get
    plain: bool = True  # the loss compares outputs with targets, so training must make it fall
    complete: bool = True  # False: time ran out before the last step
    dense: bool = False  # each sample asks for many numbers at once, as images and sequences do
    # Of the outputs at the end of a run that failed, in evaluation mode, as root mean squares; None: not measured.
    spread: float | None = None  # between samples
    noise: float | None = None  # between passes over the same samples
    constant: float | None = None  # the best loss that one and the same answer for all samples could reach
    crowd: "CrowdTrial | None" = None  # for a model that has room for a few samples only
    decay: float | None = None  # the user's weight decay, where the batch was not learned with it
    free_losses: tuple[float, ...] = ()  # of the same steps without it

    def remaining(self, losses: tuple[float, ...]) -> float:
        """The share of the loss above the floor that is left at the end."""
        start, final = losses[0] - self.floor, min(losses[-5:]) - self.floor
        return final / start if start > 0 else 0.0

    @property
    def best(self) -> tuple[float, ...]:
        """The losses of whichever rate left less, with everything else as the user set it up."""
        return min((self.losses, self.tuned_losses or self.losses), key=self.remaining)

    def still_falls(self, losses: tuple[float, ...], stands_still: float) -> bool:
        """Did the last third of the steps gain at least this share of what was left?"""
        if len(losses) < LEAST_STEPS:
            return False
        third = len(losses) // 3
        before, after = min(losses[third : 2 * third]) - self.floor, min(losses[2 * third :]) - self.floor
        return before > 0 and 1 - after / before > stands_still


@dataclass(frozen=True)
class CrowdTrial:
    """More samples than the model has room for: not to be learned by heart, but to be told apart."""

    samples: int
    loss: float  # the best that was reached
    constant: float  # what one and the same answer for all samples reaches
    floor: float
    chance: float  # what a model of that size may gain by chance, as a share like `gained`

    @property
    def gained(self) -> float:
        """Of what one answer for all leaves."""
        return (self.constant - self.loss) / (self.constant - self.floor)


@dataclass(frozen=True)
class Ablation(Trial):
    """Memorising one batch with its inputs and with blanked inputs."""

    steps: int
    losses: tuple[float, ...]
    blank_losses: tuple[float, ...]
    constant_floor: float | None  # the best loss that one and the same answer for all could reach
    floor: float | None = None  # the best loss there is, where known
    stalled: bool = False  # with its inputs the batch is not memorised at any rate


@dataclass(frozen=True)
class TargetPermutation(Trial):
    """Loss on the batch as it is and with targets of other samples."""

    loss: float
    permuted: tuple[float, ...]
    distinct_targets: int
    rounding: float  # a difference below this is rounding
    # All samples with the target of one of them: tells where a model gives every sample the same answer.
    replaced: tuple[float, ...] = ()
    gradients_differ: bool = False  # where no loss differs: with other targets, do the gradients?
    # Where only permuting makes no difference, in float64: does the loss know whose target is whose? None: not asked, or unclear.
    paired: bool | None = None


@dataclass(frozen=True)
class SameTargets(Trial):
    """All samples have (almost) the same target; equal trainings with and without inputs show what the inputs add.

    The losses are of held-out batches, each without its inputs where the training had none.
    """

    samples: int
    numbers: int  # a target has
    unlike: float  # share of the targets' variance that is not the same for all samples; 0: they are equal
    steps: int
    start: float
    with_inputs: float
    without_inputs: float
    error: float  # standard error of the difference of the two
    link_skill: float | None = None  # r² at which simple learners tell from the inputs what is not the same; None: all is
    link_p_value: float | None = None

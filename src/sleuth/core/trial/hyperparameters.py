"""What was measured of the settings. One frozen class a probe."""

from dataclasses import dataclass

from sleuth.core.trial.kind import Trial


@dataclass(frozen=True)
class RangeTest(Trial):
    """The loss while the learning rate rises exponentially from step to step."""

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    noise: float  # std of the loss between batches at unchanged weights
    suggested: float | None
    reason: str
    current: float | None
    # Short runs from the same start, one a rate: (rate, loss at the start, loss at the end or None if it blew up).
    runs: tuple[tuple[float, float, float | None], ...] = ()
    run_steps: int = 0
    course: tuple[float, ...] = ()  # the loss at each step of the run at the current rate
    # Of each run's gain, from how differently the batches that judge it gained; None: too few of them, or it blew up.
    gain_errors: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class GradientNoise(Trial):
    """The simple noise scale of McCandlish et al. (2018): the batch size at which the noise of a gradient is as large as the
    gradient itself. From the gradients of many batches at the same weights, with unbiased estimates of both."""

    batch_size: int
    gradients: int  # how many were compared at each point
    points: tuple["NoiseScale", ...]  # at the start and, where that is extreme, once more after some training


@dataclass(frozen=True)
class NoiseScale:
    """In samples. The interval is two and a half standard errors to each side, by the jackknife over batches."""

    step: int
    scale: float | None  # None: no gradient beyond the noise was seen
    low: float
    high: float | None  # None: the noise may be any number of times the gradient


@dataclass(frozen=True)
class DecayTrial(Trial):
    """The same steps from the same start with the user's weight decay and with none.

    Pulls: how far decay alone moves the weights in a few steps, against how far the gradients move them. Without a
    trial (`steps` 0) the pull at the start was too weak to matter.
    """

    decay: float
    pull: float  # at the start
    later_pull: float | None = None  # after the steps with decay
    steps: int = 0
    losses: tuple[float, ...] = ()  # of each step, with decay
    free_losses: tuple[float, ...] = ()  # without
    start: float | None = None  # mean loss of the judging batches
    end: float | None = None  # with decay; None: it blew up
    free_end: float | None = None  # without decay; None: it blew up
    difference_error: float | None = None  # standard error of end − free_end, batch by batch
    validation_end: float | None = None
    validation_free_end: float | None = None
    held_out: bool = False  # the judging batches were not trained on


@dataclass(frozen=True)
class LongTraining(Trial):
    """How far the model gets on the training set, and how far simple learners get on the same samples held out.

    Scores: the share of right answers where the target is a class, r² where it is a number; 1 is perfect. The learner was
    chosen by its held-out answers in training, never by validation. Without `steps` no training was needed.
    """

    samples: int
    targets: int  # numbers in all their targets
    parameters: int  # trainable
    classes: int = 0  # 0: the target is a number
    chance: float = 0.0  # the score of one and the same answer for all
    learner: str = ""
    learner_score: float | None = None  # each training sample predicted from the others
    steps: tuple[int, ...] = ()  # at which the model was scored, as the user set it up
    scores: tuple[float, ...] = ()  # on the training samples themselves
    validation_scores: tuple[float, ...] = ()
    rate: float | None = None  # of another training, without weight decay, at a rate found by a range test
    later_steps: tuple[int, ...] = ()
    later_scores: tuple[float, ...] = ()
    flat: bool = False  # the better of the two stood still at its end, in loss and in score
    validation_samples: int = 0
    learner_validation: float | None = None  # the learner's score there, learned from the training samples alone
    p_value: float | None = None  # that the learner is better than the trained model on validation by chance
    why_not: str | None = None  # it could not be tried, or nobody could tell from it

    @property
    def best(self) -> float:
        return max((*self.scores, *self.later_scores), default=0.0)

"""What probes measure: one frozen class a probe. A check reads the class and judges the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sleuth.core.location import Location
from sleuth.core.observation import Observation


@dataclass(frozen=True)
class Trial(Observation):
    """Abstract: the result of one experiment."""


@dataclass(frozen=True)
class Overlap(Trial):
    """Validation samples that stand in the training set, by fingerprint of the inputs. Blank samples are left out."""

    train_samples: int
    validation_samples: int
    exact: "Matches"
    rounded: "Matches"  # equal up to the noise of half precision, the exact ones included
    examples: tuple[tuple[int, int], ...]  # (position in validation, position in training), as they were read
    complete: bool  # False: only a part of the data was read
    coincidence: float = 1.0  # share of samples expected to meet an equal in training by nature, from near misses
    blank_samples: int = 0  # of validation


@dataclass(frozen=True)
class Matches:
    """Counts of samples. Repeated ones have an equal within their own split: how natural it is to meet one's equal."""

    found: int  # validation samples that stand in training
    distinct: int  # different validation samples
    distinct_found: int
    train_repeated: int
    validation_repeated: int


@dataclass(frozen=True)
class Alignment(Trial):
    """How much simple learners find out about the targets from the inputs, against permuted targets.

    Skills are r² of held-out predictions: 0 is guessing, 1 is perfect, below 0 is misled. `detectable` is the strength of a
    link, as r² of the best possible prediction, that these samples would have shown with 95 % probability; None when
    it was not needed because information was found.
    """

    samples: int
    classes: int  # that are frequent enough to be told apart; 0: the target is not one class a sample
    skill: float
    permuted_mean: float
    permuted_std: float
    p_value: float
    learner: str
    detectable: float | None = None
    freedom: float | None = None  # 1: each value of a sample varies for itself; near 0: few directions tell all
    moved: "Moved | None" = None  # the best of the other orders of the targets; None: the data set's order is unknown
    serial: float | None = None  # skill at predicting the next row's inputs: high in a time series
    model_skill: float | None = None  # held-out skill of the user's own model after a short training
    model_p_value: float | None = None
    validation_samples: int = 0
    validation_skill: float | None = None  # the same learners within validation, where training shows nothing
    validation_p_value: float | None = None


@dataclass(frozen=True)
class Moved:
    """Targets in another order than they are: `rows` is what np.roll would move them by; None means reversed."""

    rows: int | None
    skill: float
    p_value: float  # for all orders together that were tried
    serial: float  # skill at predicting the inputs that many rows away
    contained: float = 0.0  # how nearly these targets stand in the inputs as they are, as correlation with single columns


@dataclass(frozen=True)
class Order(Trial):
    """In which order the labels come. `runs` counts neighbours with unequal labels, plus one.

    Without labels `samples` is 0. Real-valued targets count as two classes: above their mean, and not.
    """

    samples: int
    runs: int
    expected_runs: float
    runs_std: float
    single_class_batches: int
    batches: int
    epochs_in_same_order: bool | None  # None: a second epoch was not read
    order_is_ours: bool = False  # plain arrays: sleuth itself chose the batches
    real_target: bool = False  # the labels are two parts of a real-valued target
    complete: bool = True  # False: only a part of the data was read
    batches_fixed: bool = False  # a list of batches: their order may be drawn in the user's loop


@dataclass(frozen=True)
class ParameterStart(Trial):
    """How each weight matrix looked before training; biases and vectors are left out."""

    parameters: tuple["StartFacts", ...]


@dataclass(frozen=True)
class StartFacts:
    path: str
    family: str
    shape: tuple[int, ...]
    std: float
    mean: float
    all_zero: bool
    all_equal: bool
    all_positive: bool
    identical_rows: int  # rows (units) that equal another one, not counting constant matrices
    rows: int
    fan_in: int
    trained: bool  # a weight that a checkpoint brought, as far as can be told
    # Rows that equal another one at the start and still do after a few steps; None: no steps could be taken.
    still_identical: int | None = 0


@dataclass(frozen=True)
class InitialLoss(Trial):
    """Loss of the untrained model against what guessing gives."""

    measured: float
    expected: float
    spread: float  # how far the expectation moves with the batch that was drawn
    how: str  # "ln 10 for 10 classes", …


@dataclass(frozen=True)
class Connection(Trial):
    """Which trainable parameters the loss reaches, and where the graph is cut when it does not."""

    parameters: int
    without_gradient: tuple[str, ...]
    cuts: tuple["Cut", ...] = ()
    unused_layers: tuple[str, ...] = ()  # layers whose forward never ran
    error: str | None = None  # backward could not start: nothing needs a gradient
    custom: tuple[str, ...] | None = None  # operations with a hand-written backward; None: not looked for


@dataclass(frozen=True)
class Cut:
    operation: str
    layer: str | None
    location: Location | None
    certain: bool = True
    parameters: tuple[str, ...] = ()  # the ones without gradient whose values pass here


@dataclass(frozen=True)
class Dependence(Trial):
    """What the outputs depend on, found by changing inputs one at a time in eval mode.

    Changes are relative to the outputs' own spread. `mixing` is the largest change of a sample whose own input stayed.
    """

    samples: int
    whole_input: float  # change when every input is replaced
    own_input: float  # median change of a sample when its input is replaced
    mixing: float
    mixed_samples: int
    by_input: Mapping[str, float] = field(default_factory=dict)  # change when only this input is replaced
    main_input: str | None = None  # the largest floating input, where there are several and one stands out
    mixing_unknown: str | None = None  # why samples cannot be told apart in the outputs; `mixing` means nothing then
    equivariant: bool | None = None  # mixing, but reordering the samples only reorders the outputs


@dataclass(frozen=True)
class ModeAgreement(Trial):
    """The same batches in training and in evaluation mode, after running statistics had time to settle.

    Both numbers are in units of what the outputs vary by: from sample to sample and from pass to pass.
    """

    difference: float  # of the mean of several passes in training mode from evaluation mode
    noise: float  # by which passes in training mode differ from their mean
    train_loss: float | None
    eval_loss: float | None
    explained: str | None = None  # why the modes differ by design


@dataclass(frozen=True)
class GradientCheck(Trial):
    """Analytic against numerical gradients, in float64, along random directions and single entries."""

    parameters: tuple["GradientError", ...]
    float64: bool


@dataclass(frozen=True)
class GradientError:
    path: str
    relative_error: float
    analytic: float
    numeric: float
    noise: float  # relative error that rounding alone explains
    ratio: float | None = None  # analytic / numeric where it is the same for every direction


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

    def remaining(self, losses: tuple[float, ...]) -> float:
        """The share of the loss above the floor that is left at the end."""
        start, final = losses[0] - self.floor, min(losses[-5:]) - self.floor
        return final / start if start > 0 else 0.0


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


@dataclass(frozen=True)
class Causality(Trial):
    """A model that predicts the next element: does its answer at a position depend on later ones?"""

    positions: int
    leaking: int  # positions whose output moved when only later inputs changed
    change: float  # the largest such move, relative to the outputs' own spread
    reach: int  # how many positions ahead the nearest leak comes from


@dataclass(frozen=True)
class Repeats(Trial):
    """Training samples with equal inputs. Blank samples are left out: that they are equal says nothing."""

    samples: int
    distinct: int
    most: int  # how often the most repeated one stands there
    example: tuple[int, int] | None  # positions of two equals
    coincidence: float  # share of samples expected to meet an equal by nature
    evens_classes: bool  # what is repeated belongs to classes that were rare: oversampling on purpose
    labelled: bool  # the target is one class a sample
    conflicting: int = 0  # samples whose equals carry another class
    conflict: tuple[int, int, int, int] | None = None  # position and class of one, position and class of its equal

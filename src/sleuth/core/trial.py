"""What probes measure: one frozen class a probe. A check reads the class and judges the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sleuth.core.location import Location
from sleuth.core.observation import Observation, Stray


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
    # The same learners within validation, where training shows nothing, or shows something only in another order.
    validation_skill: float | None = None
    validation_p_value: float | None = None
    orders_tried: int = 0


@dataclass(frozen=True)
class Moved:
    """Targets in another order than they are: `rows` is what np.roll would move them by; None means reversed."""

    rows: int | None
    skill: float
    p_value: float  # for all orders together that were tried
    serial: float  # skill at predicting the inputs that many rows away
    contained: float = 0.0  # how nearly these targets stand in the inputs as they are, as correlation with single columns
    runner_up: float = 0.0  # skill of the next best order: in a season every order of the same phase does as well


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
    # How many times larger the layer's output is than with these numbers in random signs; None: not positive, or of a known kind.
    sign_gain: float | None = None


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
    # Trainable numbers at work in the model that it does not know. Holders: "forward" (made at every call), "forward, plain"
    # (the same, of ones and zeros), "first call" (registered only then), "elsewhere". None: not looked for.
    strangers: tuple[Stray, ...] | None = None


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
    epochs_to_follow: float | None = None  # of running statistics that are slower than any training; None: usual ones


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
    # Of the outputs at the end of a run that failed, in evaluation mode, as root mean squares; None: not measured.
    spread: float | None = None  # between samples
    noise: float | None = None  # between passes over the same samples
    constant: float | None = None  # the best loss that one and the same answer for all samples could reach
    crowd: "CrowdTrial | None" = None  # for a model that has room for a few samples only

    def remaining(self, losses: tuple[float, ...]) -> float:
        """The share of the loss above the floor that is left at the end."""
        start, final = losses[0] - self.floor, min(losses[-5:]) - self.floor
        return final / start if start > 0 else 0.0


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
    complete: bool = True  # False: only a part of the data was read


@dataclass(frozen=True)
class Feeding(Trial):
    """Whether the steps get different batches, by fingerprint of all that a batch holds. Only batches of the usual size count."""

    batches: int
    distinct: int
    samples: int  # in a batch
    distinct_samples: int  # in the first batch
    complete: bool  # False: only a part of the epoch was read
    available: int | None = None  # samples of the data set behind, where that can be asked
    listed: bool = False  # a list that holds the batches: whoever wrote it may mean them to be equal
    validation_samples: int | None = None


@dataclass(frozen=True)
class SecondPass(Trial):
    """Validation read twice. Equal up to the noise of half precision counts as equal; the order does not count."""

    compared: int  # samples that were read twice at their own position in the data set; 0: positions are not known
    changed: int  # of these, samples whose inputs came out otherwise
    targets_changed: int
    example: int | None = None  # the position of a changed one
    passes: tuple[int, int] | None = None  # samples of two whole passes; None: they were not compared
    lost: int = 0  # samples of one pass that the other did not bring, at most
    total: int | None = None  # samples of the data set, where known
    complete: bool = True  # False: only a part of validation was looked at
    by_design: str | None = None  # why such inputs may be drawn anew on purpose


@dataclass(frozen=True)
class WorkerNoise(Trial):
    """What a loader's worker processes make of the same samples. Shares are of comparisons that came out equal.

    `alike_within`: a worker with itself, later on; below 1 there is augmentation. `alike_across`: different workers at the same
    turn. `alike_epochs`: the same worker at the same turn of another epoch. Of a stream only the first samples of each worker
    are compared: `stream_alike` is the share that two workers have in common.
    """

    workers: int  # that the loader has
    tried: int  # that were run for this; 0: there was nothing to run
    comparisons: int = 0
    alike_within: float = 1.0
    alike_across: float = 0.0
    alike_epochs: float = 0.0
    persistent: bool = False  # workers live on from epoch to epoch
    stream_alike: float | None = None  # None: the workers do not read a stream
    stream_samples: int = 0  # different ones that were compared
    stream_copies: bool = False  # in a whole epoch each sample comes once for every worker


@dataclass(frozen=True)
class Giveaway(Trial):
    """How well single columns of a table predict the target, each sample held out in turn.

    Errors: 0 is perfect, 1 is no better than guessing. For classes the share of wrong answers, each class counting the same,
    over what guessing gets wrong; for numbers 1 − r². `next_error` is that of the best column that is not accused.
    """

    samples: int
    total: int | None  # of the data set, where known
    columns: int
    classes: int  # 0: the target is a number
    accused: tuple[str, ...]  # columns whose error is near zero, best first
    error: float
    next_error: float
    next_column: str | None
    p_value: float  # of so small an error among all columns, were they independent of the target: an upper bound
    copied: bool = False  # the best column holds one value for each class, or the number itself, rescaled
    # How far apart neighbouring classes are in the best column, in their spreads; None: the values of a class do not vary,
    # or the column counts the rows.
    separation: float | None = None
    rest_skill: float | None = None  # r² of held-out predictions from all other columns together; None: not needed
    rest_p_value: float | None = None
    series: bool = False  # rows follow each other in time, or a later row holds the target of an earlier one
    complete: bool = True  # False: only a part of the data was looked at


@dataclass(frozen=True)
class Flow(Trial):
    """One forward pass: its operations in the order of calls, each with the earlier ones that fed it.

    What is computed from parameters or constants alone is no operation of the flow: it only has to do with `parameters`.
    """

    operations: tuple["Operation", ...]
    outputs: tuple[int, ...] = ()  # the operations whose results the model returned; empty where its parts were called one by one


@dataclass(frozen=True)
class Operation:
    """Families are those of a layer (linear, conv, recurrent, attention, embedding, batchnorm, norm, dropout, activation,
    softmax, pool, loss) and: input (what came from outside, noise included), reshape (values moved or cast), average (over
    positions), scale (times or plus something that is not data), sum and product (of data with data), other.

    Settings of linear and conv: in, out, axis and out_axis (where the features stand), bias, and for conv kernel, groups, stride,
    transposed. Of dropout: p. Of norms: centres, the axis for each of whose entries the mean is subtracted, if any.
    """

    name: str  # as the framework calls it
    family: str
    sources: tuple[int, ...]
    shape: tuple[int, ...]
    layer: str = ""  # path of the innermost layer that it ran in
    parameters: tuple[str, ...] = ()  # matrices before vectors
    settings: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None
    axes: tuple[tuple[int, ...], ...] | None = None  # for each axis of the result, the axes of the source it is made of
    leaves: bool = False  # the result left the model, or a part of it that the user's loop calls by itself


@dataclass(frozen=True)
class OutputSpread(Trial):
    """How far the outputs of different samples lie apart. Spreads are root mean squares."""

    samples: int
    spread: float  # from the mean over samples, at the start, in evaluation mode
    size: float  # of the outputs themselves, at the start
    inputs_differ: bool
    targets: int | None  # different ones among these samples; None: there are none to count
    trained_spread: float | None = None  # the widest, in either mode, within `steps` steps of plain descent; None: not tried
    trained_size: float | None = None
    steps: int = 0
    why_untrained: str | None = None


@dataclass(frozen=True)
class Capacity(Trial):
    """Numbers that can be learned, against numbers there are to learn from."""

    trainable: int  # parameters that a gradient reaches and an optimiser may move, tables of embeddings left out
    samples: int | None  # of the training set; None: its length is not known
    values: int | None  # numbers in all their targets; in the inputs where there are no targets
    trained: bool  # the weights do not look freshly drawn
    input_numbers: int = 0  # a sample has


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


@dataclass(frozen=True)
class FrozenTrunk(Trial):
    """A stretch of frozen weight matrices that the data meets before any that learns."""

    first: str
    last: str
    layers: int
    numbers: int  # that all frozen weight matrices hold
    total: int  # that all weight matrices hold
    mark: str | None  # what shows that they were never trained; None: they look trained, or it cannot be told


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


@dataclass(frozen=True)
class Padding(Trial):
    """Targets that are padding, and whether the loss counts what the model answers there.

    An effect is the mean change of the loss when answers change places: those at padded positions for those at real ones,
    or as many at real positions among each other. Without padding both are 0.
    """

    samples: int  # that were looked at
    targets: int  # positions in them
    padded: int
    value: float | None = None  # the target that stands at padded positions; None: several numbers a position
    whole: bool = False  # targets are whole numbers
    also_real: bool = False  # the same target stands at real positions too
    shown_by: str = ""  # what the inputs hold where the targets are padded
    loss: float = 0.0
    padded_effect: float = 0.0
    real_effect: float = 0.0
    rounding: float = 0.0  # a difference below this is rounding


@dataclass(frozen=True)
class Resemblance(Trial):
    """Near-duplicates, looked for only where the user asks: within training, and of validation in training."""

    within: "Alike | None" = None
    across: "Alike | None" = None


@dataclass(frozen=True)
class Alike:
    """Some samples, each compared with all others. Differences are squared distances as a share of what is usual between two."""

    near: float  # up to this difference samples count as near-duplicates
    asked: int  # samples that were compared with all others
    others: int
    found: int  # of those asked, have a near-duplicate that is not their equal
    neighbours: int  # of those asked, have any other that near; more than `found` where that is natural
    dimension: float  # in how many directions samples vary, seen from how their neighbours thin out
    examples: tuple[tuple[int, int, float], ...]  # (position, position of the other, difference), as they were read

    @property
    def share(self) -> float:
        return self.found / max(self.asked, 1)

    @property
    def natural_share(self) -> float:
        return (self.neighbours - self.found) / max(self.asked, 1)

    def numbers(self) -> dict[str, float | int]:
        return {"near_found": self.found, "near_asked": self.asked, "near": self.near, "dimension": self.dimension}

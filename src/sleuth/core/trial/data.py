"""What was measured of the data. One frozen class a probe."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sleuth.core.trial.kind import Trial


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
    late: "Late | None" = None  # None: not asked


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
class Late:
    """The same of what came last in a training, of what came first and of validation, with as many samples each."""

    since: int  # the step at which that begins
    samples: int
    skill: float
    early_skill: float
    early_p_value: float
    validation_skill: float
    validation_p_value: float


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
    unending: bool = False  # a stream without an end that was seen: the same samples may come again on purpose


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
    by_hand: bool = False  # no loader gives them: the loop itself makes a batch for each step


@dataclass(frozen=True)
class Drift(Trial):
    """Statistics of the input features, a row each: of training early and late, and of validation as of the same time."""

    since: int  # the step at which what counts as late begins
    early: np.ndarray
    late: np.ndarray
    early_validation: np.ndarray
    late_validation: np.ndarray
    began: int | None = None  # the step from which on training differs from its beginning; None: it does not


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


@dataclass(frozen=True)
class TargetShift(Trial):
    """Sequences: how far ahead of its own position in the input the element lies that each prediction is compared with.

    The target is what the loss function was really given, laid back over the positions of the input (views, flattening, cuts,
    shifts inside the model and what is left out undone): a model that shifts by itself and one whose labels were shifted outside
    give the same here.
    """

    input: str  # path of the input array among the model's arguments; "" where it is the only one
    axis: int  # of the positions: 1 (samples, positions), 0 (positions, samples)
    samples: int  # sequences that were compared
    length: int  # positions of each
    shares: Mapping[int, float]  # shift k -> share of the counted positions whose target is the input k positions later
    counted: Mapping[int, int]  # shift k -> positions compared: in range, and not left out by the loss
    chance: float  # share that would be equal if targets and inputs were drawn independently, by their frequencies
    ignored: float  # share of the positions that the loss leaves out
    given: Mapping[int, float]  # the same shares for the target as the model or the loader was given it; empty: unknown
    integers: bool  # token ids; False: floating numbers
    traced: bool = True  # the loss function was heard, and what it was given was found among the model's answers

    @property
    def best(self) -> int | None:
        """The shift at which nearly all positions agree; the smallest among equals."""
        agreeing = [k for k, share in self.shares.items() if share >= AGREEING]
        return min(agreeing, key=lambda k: (-round(self.shares[k], 2), abs(k)), default=None)


# A few elements differ where a document ends, or a mask stands.
AGREEING = 0.9

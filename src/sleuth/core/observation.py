"""The closed set of facts that everything stands on: plain frozen data, never live tensors.

A new check is routine. A new kind of observation needs a paragraph in docs/design.md, because every adapter
must then produce it. What probes measure are the `Trial`s in `core.trial`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from sleuth.core.location import Location
from sleuth.core.statistics import Statistics


class Role(Enum):
    """Which tensors of a step a `Frame` describes. GRADIENT: parameter gradients as the step uses them."""

    INPUT = "input"
    ACTIVATION = "activation"
    GRADIENT = "gradient"
    WEIGHT = "weight"
    UPDATE = "update"


class Split(Enum):
    TRAIN = "train"
    VALIDATION = "validation"


@dataclass(frozen=True)
class Observation:
    """Abstract: every observation is one of the classes below or a `Trial`."""


@dataclass(frozen=True)
class Layer:
    """`kind` is the class as the user knows it, `family` a word that means the same in every framework.

    Families: linear, conv, recurrent, attention, embedding, batchnorm, norm, dropout, activation, softmax,
    pool, flatten, loss, container, other. Settings hold plain values: in, out, p, axis, activation, bias, …
    """

    path: str
    kind: str
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None


@dataclass(frozen=True)
class Parameter:
    path: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    trainable: bool
    optimised: bool | None  # None: there is no optimiser to ask
    layer: str = ""
    family: str = "other"  # the layer's
    tied_to: str | None = None

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Stray:
    """Something with parameters that the model holds where its framework does not look."""

    path: str
    holder: str  # "list", "dict", "tuple", "object"
    parameters: int
    location: Location | None = None


@dataclass(frozen=True)
class Architecture(Observation):
    """Layers in the order of definition; parameters likewise."""

    layers: tuple[Layer, ...]
    parameters: tuple[Parameter, ...]
    strays: tuple[Stray, ...] | None = None  # None: this framework was not searched for them

    def has(self, *families: str) -> bool:
        return any(layer.family in families for layer in self.layers)


@dataclass(frozen=True)
class Settings(Observation):
    framework: str
    loss: str | None
    optimiser: str | None
    lr: float | None
    optimiser_options: Mapping[str, Any] = field(default_factory=dict)
    parameter_dtype: str | None = None
    foreign_parameters: int = 0  # held by the optimiser and not part of the model
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrayFacts:
    """One array at some door, measured."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    statistics: Statistics
    whole_share: float  # share of finite values that are whole numbers
    device: str = "cpu"

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype


@dataclass(frozen=True)
class Batch(Observation):
    """One batch as the data source gave it. `features` has one row of statistics per feature of the first
    floating or pixel input: per column of a table, per channel of an image."""

    split: Split
    index: int
    size: int
    inputs: tuple[ArrayFacts, ...]
    target: ArrayFacts | None
    features: np.ndarray | None = None
    feature_axis: str = ""  # "column" or "channel"
    labels: Mapping[int, int] | None = None  # class → samples, when the target holds one class per sample
    whole_targets: Mapping[int, int] | None = None  # value → samples, when a one-column target holds whole numbers only
    bad_inputs: tuple[int, ...] = ()  # samples with NaN or Inf, by position in the batch
    bad_targets: tuple[int, ...] = ()
    blank_inputs: int = 0  # samples whose every value is the same


@dataclass(frozen=True)
class Argument:
    """What a loss was given. Sums are the range (least, largest) of the sums along each axis, by axis; empty when the array
    is not of floats, not finite, or too large to add up."""

    facts: ArrayFacts
    role: str  # "output", "target", "weight", "other"
    producer: str | None = None  # the op that made it: softmax, log_softmax, sigmoid, …
    axis_sums: tuple[tuple[float, float], ...] = ()
    producer_location: Location | None = None
    producer_axis: int | None = None  # the axis a softmax normalised over, counted from the front
    behind: str | None = None  # the op that made what the producer was given
    exp_sums: tuple[tuple[float, float], ...] = ()  # like axis_sums, of exp(values); only where no value is above zero


@dataclass(frozen=True)
class LossCall(Observation):
    """One call of a loss function. Families: cross-entropy, nll, bce, bce-logits, mse, l1, huber, kl, ctc, hinge, other.

    A step may hold several calls; each knows its own `returned` and the `value` of the step's loss as a whole.
    """

    name: str
    family: str
    value: float | None  # the step's loss; None when it is not finite or not one number
    arguments: tuple[Argument, ...]
    output_shape: tuple[int, ...] = ()  # the shape of what the loss returned
    broadcast: tuple[int, ...] | None = None  # a shape larger than both sides that output and target blew up to
    reduction: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # ignore_index, label_smoothing, pos_weight, …
    location: Location | None = None
    broadcast_location: Location | None = None
    returned: float | None = None  # the mean of what this call returned; None when that is not finite
    failed: bool = False  # the call raised; its Failure says why

    def argument(self, role: str) -> Argument | None:
        return next((a for a in self.arguments if a.role == role), None)

    def was_given(self, batch: Batch) -> bool:
        """Is the batch's target what this call compared with, up to its shape? A loop may shift, scale or replace it first."""
        target = self.argument("target")
        if target is None or batch.target is None:
            return False
        mine, its = target.facts.statistics, batch.target.statistics
        same = (mine.count, mine.min, mine.max) == (its.count, its.min, its.max)
        return same and abs(mine.mean - its.mean) <= 1e-5 * (abs(its.mean) + its.std)


@dataclass(frozen=True)
class Frame(Observation):
    """Statistics of many tensors at one step: one row a tensor, in the order of `paths`."""

    step: int
    role: Role
    paths: tuple[str, ...]
    table: np.ndarray
    exponents: np.ndarray | None = None  # counts of binary exponents in bins of eight; of large tensors only a sample is counted
    sampled: int = 0  # not 0: the table speaks of at most so many values of each tensor

    def statistics(self) -> dict[str, Statistics]:
        return {path: Statistics.from_row(row) for path, row in zip(self.paths, self.table.tolist(), strict=True)}


@dataclass(frozen=True)
class Precision(Observation):
    """In which dtypes the layers of a training compute: seen at its first deep look, and again when they change."""

    step: int
    activations: Mapping[str, str]  # layer → dtype of what it puts out


@dataclass(frozen=True)
class Units(Observation):
    """Per unit of one layer (channel of a convolution, column of a linear layer), over `samples` samples."""

    step: int
    path: str
    family: str
    activation: str  # "relu", "sigmoid", …; "" when the layer is not an activation
    samples: int
    nonzero: np.ndarray
    min: np.ndarray
    max: np.ndarray
    pinned: float | None = None  # share of values at the ends of a bounded activation; None: it has no ends


@dataclass(frozen=True)
class Call(Observation):
    """A place in the user's loop from which something was called for the first time."""

    kind: str  # as in Step.calls
    step: int
    location: Location | None
    optimiser: int = 0


@dataclass(frozen=True)
class Step(Observation):
    """One step of one optimiser.

    `calls` is what the loop did since the step before, in order, repetitions in a row once: zero_grad, forward, forward-in-eval,
    validate, validate-in-train (without a graph), backward, gradient (asked for without a backward), clip, clip-on-used-gradient
    (after the step), clip-on-nothing (before the backward), clip-on-scaled-gradient (before a scaler's unscale), unscale,
    scheduler, first-scheduler (before the optimiser ever stepped), told-scheduler (that was given a metric or an epoch), each
    also with -of-another (optimiser), skipped (by a scaler), skipped-on-used-gradient, and at the end one of step,
    step-on-used-gradient (that an earlier step had used and nobody cleared),
    step-on-altered-gradient (the same, but changed by hand in between), step-on-same-gradient (no backward since the last step),
    step-on-given-gradient (that came from no backward), step-on-erased-gradient (cleared after the backward),
    step-without-gradient.
    """

    step: int
    loss: float | None  # None: NaN or Inf
    lr: float | None = None
    gradient_norm: float | None = None
    clipped_norm: float | None = None
    calls: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # how often each of them came, repetitions included
    optimiser: int = 0  # which one, where there are several
    training: bool = True
    seconds: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: int | None = None
    heard: bool = True  # False: this step had no loss of its own, or not one number; `loss` is None then and says nothing


@dataclass(frozen=True)
class Pending(Observation):
    """What the loop did since its last step, at the end of a watch, or after many backwards: no Step can tell it."""

    step: int  # so many were taken before
    calls: tuple[str, ...]  # as in Step
    counts: Mapping[str, int] = field(default_factory=dict)
    optimisers: int = 0  # that are known
    # Have never stepped although so many backwards reached what they alone hold, and nobody else moved it.
    idle: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase(Observation):
    """The model was called several times in a row, and nothing was trained on that: a validation, mostly."""

    step: int  # it came before this one
    kind: str  # of the calls, as in Step.calls
    calls: int
    repeated: int = 0  # so many of them were given the very input of the call before
    forwards: int = 0  # with a graph, in all, between the two steps
    backwards: int = 0  # between the two steps
    optimiser: int = 0  # of the step that followed
    last: bool = False  # no step followed


@dataclass(frozen=True)
class Modes(Observation):
    """In which mode those layers were that act differently in training, when the model was called. Told when it changes."""

    step: int
    graph: bool  # the call built one: training, mostly
    root: bool  # the model's own flag
    active: tuple[str, ...]  # paths of layers in training mode
    resting: tuple[str, ...]  # in evaluation mode
    frozen: tuple[str, ...] = ()  # of either: in parts of which nothing is trained
    families: Mapping[str, str] = field(default_factory=dict)  # path → dropout, batchnorm, …
    recalibrating: bool = False  # batch-norms are set to average over everything they see


@dataclass(frozen=True)
class Optimiser(Observation):
    """An optimiser took its first step, or (`returned`) one again after a later one had begun."""

    step: int
    number: int
    kind: str
    parameters: int  # tensors
    stateful: bool  # it remembers something from step to step
    given: bool = True  # to the watch; else it was met
    returned: bool = False
    predecessor: int | None = None  # that stepped before and holds some of the same
    shared: int = 0  # tensors that both hold
    predecessor_parameters: int = 0
    predecessor_steps: int = 0
    carried: bool = False  # it came with a state
    rewritten: bool = False  # somebody wrote into the weights since the step before
    passes: int = 0  # over the training data that the predecessor saw; 0: no loader was heard
    location: Location | None = None  # where it was made, if that was seen


@dataclass(frozen=True)
class Jump(Observation):
    """The loss of a step stood far above those before it. Kept beside the steps, since of a long training most steps are not."""

    step: int
    loss: float  # the highest
    usual: float  # the middle of those before
    spread: float  # by how much the highest of those before is above their middle
    steps: int = 1  # until it came back
    back: bool = False  # False: it did not come back within a few steps
    raised: bool = False  # the learning rate went up at this very step
    optimiser: int = 0


@dataclass(frozen=True)
class Ending(Observation):
    """The user's own training came to its end. Only a source that saw it says so: a trial of ours is no training.

    How: completed (the loop ran out), stopped (early stopping), interrupted (by the user), failed (an exception).
    """

    step: int
    how: str = "completed"


@dataclass(frozen=True)
class Evaluation(Observation):
    step: int
    split: Split
    metrics: Mapping[str, float]
    logged: bool = False  # the user said so; else it was measured on what the loop computed


@dataclass(frozen=True)
class Predictions(Observation):
    """Which classes the model named, against the right ones; of large batches an even sample. What the loss leaves out is left
    out. One class a sample: labels of which several may hold at once are not counted."""

    step: int
    split: Split
    outputs: int  # how many classes it can name
    predicted: Mapping[int, int]  # class → how often the model named it
    targets: Mapping[int, int]  # class → how often it was right
    right: int
    location: Location | None = None  # of the loss

    @property
    def samples(self) -> int:
        return sum(self.targets.values())


@dataclass(frozen=True)
class Part:
    """One of several backwards of a step, and the one loss function behind it."""

    value: float | None  # of what went backward, before a scaler; None: not finite, or not one number
    returned: float | None  # by the loss; None: none was heard behind it, or several
    loss: str = ""
    reduction: str | None = None
    target: tuple[float, ...] = ()  # least, largest and mean
    location: Location | None = None


@dataclass(frozen=True)
class Accumulation(Observation):
    """A step that more than one backward fed."""

    step: int
    parts: tuple[Part, ...]
    forwards: int
    touched: bool  # was the gradient changed between the last backward and the step?
    optimiser: int = 0


@dataclass(frozen=True)
class Failure(Observation):
    """An exception of the user's code. Kinds: shape, dtype, device, index, batch-of-one, type, arguments, key, name, graph,
    value, other."""

    phase: str  # "data", "forward", "loss", "backward", "step"
    error: str
    message: str
    kind: str = "other"
    layer: str | None = None
    expected: str | None = None
    got: str | None = None
    advice: str | None = None
    location: Location | None = None


@dataclass(frozen=True)
class Origin(Observation):
    """The operation in which NaN or Inf was born: its output is not finite while its inputs are."""

    step: int
    operation: str
    direction: str  # "forward" or "backward"
    layer: str | None
    inputs: tuple[tuple[float, float], ...]  # range of each input
    location: Location | None
    nans: int = 0
    infs: int = 0


@dataclass(frozen=True)
class NotFinite(Observation):
    """NaN or Inf was seen at the very step, before the optimiser wrote. What: loss, gradient. A gradient that a scaler threw
    away does not count."""

    step: int
    what: str
    where: str | None = None  # the parameter
    nans: int = 0
    infs: int = 0
    optimiser: int = 0


@dataclass(frozen=True)
class Suspect(Observation):
    """The sample of a batch that seems to have broken a step."""

    step: int
    position: int  # in the batch
    index: int | None  # in the data set that the loader was given; None: no sampler told
    reason: str  # a clause: "its input holds NaN"
    certain: bool  # its own values are not finite; else it stands out
    behind: int | None = None  # where the loader was given a part of a data set: the index in the whole
    likely_index: bool = False  # the batch was told from others by its size only

    @property
    def name(self) -> str:
        if self.index is None:
            return f"sample {self.position} of the batch"
        of = f"sample {self.index:,} of the data set"
        if self.behind is not None:
            of = f"sample {self.behind:,} of the data set ({self.index:,} of the part that the loader was given)"
        return f"most likely {of}" if self.likely_index else of


@dataclass(frozen=True)
class Holder:
    """A variable of the user's that keeps things in memory."""

    name: str  # as the user writes it: total, self.losses
    what: str  # "a tensor of shape (64, 10)", "312 tensors of shape (64, 10)"
    count: int = 1
    bytes: int = 0  # how much more it holds than when it was first looked at
    bounded: bool = False  # it lets the oldest go by itself
    location: Location | None = None  # the line that adds to it, where there is one


@dataclass(frozen=True)
class Retention(Observation):
    """So many earlier steps have left their graph in memory. Who holds them is looked for only when there are many, and so is
    how far back the graph of a step's own loss goes; that also when its backward raises."""

    step: int
    alive: int  # steps
    dragged: int = 0  # so many earlier steps belong to the graph of this step's loss
    through: str = ""  # "model": its forward was given or kept something old; "loss": an old loss was added; "": not known
    failed: bool = False  # the backward of this step raised
    holder: Holder | None = None
    location: Location | None = None  # the line that called the model where the graph is dragged, else the backward


@dataclass(frozen=True)
class Memory(Observation):
    """What the process holds for itself at the end of a step: files that are mapped or shared do not count."""

    step: int
    bytes: int
    passes: int = 0  # over the training data, the one that is going on included; 0: no loader was heard
    holders: tuple[Holder, ...] = ()  # what grew, the largest first; looked for only when there is a suspicion


@dataclass(frozen=True)
class Dropped(Observation):
    """We fell behind and left these steps out."""

    steps: int
    reason: str


@dataclass(frozen=True)
class Absent(Observation):
    """Something that could not be observed, and why: checks that read it are not examined for this reason."""

    what: type[Observation] | Role
    reason: str

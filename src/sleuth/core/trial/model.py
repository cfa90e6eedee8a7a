"""What was measured of the model before it is trained. One frozen class a probe."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sleuth.core.location import Location
from sleuth.core.observation import Stray
from sleuth.core.trial.kind import Trial


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
    # Of a layer of no known kind: with the matrix made smaller, what the layer gives is smaller by as much.
    in_proportion: bool = False

    @property
    def gain(self) -> float:
        """By which the matrix lets inputs of size 1 grow. Which axis of an unknown one counts its inputs cannot be told: the
        shorter one makes less of it."""
        inputs = min(self.shape) if self.family == "other" else self.fan_in
        return self.std * float(inputs) ** 0.5


@dataclass(frozen=True)
class Tying(Trial):
    """Weights that have an embedding's shape, compared with it before the first step."""

    copies: tuple["CopiedWeight", ...]


@dataclass(frozen=True)
class CopiedWeight:
    """A weight that begins with the numbers of an embedding and is another parameter."""

    path: str
    embedding: str
    size: int


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
class FrozenRest(Trial):
    """Nothing learns but biases, scales and single numbers: every weight matrix and table that is used is frozen."""

    learning: int  # numbers
    frozen: int
    fresh: str | None  # the last frozen weight that still is as an initialiser draws it; None: all look trained
    mark: str = ""  # what shows that


@dataclass(frozen=True)
class InitialLoss(Trial):
    """Loss of the untrained model against what guessing gives."""

    measured: float
    expected: float
    spread: float  # how far the expectation moves with the batch that was drawn
    how: str  # "ln 10 for 10 classes", …
    natural: float = 0.0  # what answers of size one add to it, where the targets may be far smaller than that


@dataclass(frozen=True)
class Connection(Trial):
    """Which trainable parameters the loss reaches, and where the graph is cut when it does not."""

    parameters: int
    without_gradient: tuple[str, ...]
    cuts: tuple["Cut", ...] = ()
    unused_layers: tuple[str, ...] = ()  # layers whose forward never ran
    error: str | None = None  # backward could not start: nothing needs a gradient
    custom: tuple[str, ...] | None = None  # operations with a hand-written backward; None: not looked for
    custom_lines: tuple[Location, ...] = ()  # of those backwards, where they are known
    # Trainable numbers at work in the model that it does not know. Holders: "forward" (made at every call), "forward, plain"
    # (the same, of ones and zeros), "first call" (registered only then), "hidden" (by its name), "elsewhere". None: not
    # looked for.
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
    of_one_size: bool = False  # the model takes batches of one size alone: only by their number are samples known in the outputs


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
    # What a second backward showed: "accumulates" (each adds to the one before), "stale" (it answers for an earlier batch).
    repeat: str = ""
    repeat_line: Location | None = None
    by_hand: bool = False  # the whole backward is the user's own, not a framework's


@dataclass(frozen=True)
class GradientTerm:
    """What a wrong gradient is, exactly, in place of the right one.

    Kinds: factor (`factor` times the right one), batch (also, and the factor is the number of samples), mean (it is one over
    that), transposed, activation (the derivative of `name` is left out), sample (only one sample counts), everything (it was
    summed over the units too), nothing (it is zero), decay (the weights times `factor` are added).
    """

    kind: str
    factor: float = 1.0
    name: str = ""
    samples: int = 0  # of the user's batch


@dataclass(frozen=True)
class GradientError:
    path: str
    relative_error: float
    analytic: float
    numeric: float
    noise: float  # relative error that rounding alone explains
    ratio: float | None = None  # analytic / numeric where it is the same for every direction
    term: GradientTerm | None = None
    location: Location | None = None  # the user's line that makes it


@dataclass(frozen=True)
class Causality(Trial):
    """A model that is asked for elements of its own input: does its answer at a position depend on later ones?"""

    positions: int
    leaking: int  # positions whose output moved when only later inputs changed
    change: float  # the largest such move, relative to the outputs' own spread
    reach: int  # how many positions ahead the nearest leak comes from
    ahead: int = 1  # how far ahead of its position the element lies that is asked for; 0: at that very position
    own: float = 1.0  # share of the positions tried whose output moved with the element there (where nothing leaks)


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
    transposed. Of dropout: p. Of norms: centres, the axis for each of whose entries the mean is subtracted, if any. Of softmax:
    axis.
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
    samples: tuple[int, ...] | None = None  # axes that are longer the more samples there are; None: not known


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
    # What is left of the spread at the end of the user's own training, after `steps` steps, where its loss has no target.
    collapsed: float | None = None
    location: Location | None = None  # of that loss


@dataclass(frozen=True)
class Capacity(Trial):
    """Numbers that can be learned, against numbers there are to learn from."""

    trainable: int  # parameters that a gradient reaches and an optimiser may move, tables of embeddings left out
    samples: int | None  # of the training set; None: its length is not known
    values: int | None  # numbers in all their targets; in the inputs where there are no targets
    trained: bool  # the weights do not look freshly drawn
    input_numbers: int = 0  # a sample has


@dataclass(frozen=True)
class TimeReach(Trial):
    """A model with one answer for a sequence: how far the answer moves with a small change at each of some positions."""

    length: int
    positions: tuple[int, ...]
    sizes: tuple[float, ...]  # of the answer's change, for a change of one at that position
    # How well simple learners tell the targets (held-out R²) from the positions whose size is below `FAINT` of the largest, and
    # from the others; None: not asked, or it cannot be.
    beyond: float | None = None
    within: float | None = None


# What is so much fainter than elsewhere does not reach the answer.
FAINT = 1e-4

"""What the user's loop does, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sleuth.core.location import Location
from sleuth.core.observation.base import Observation, Split


@dataclass(frozen=True)
class Call(Observation):
    """A place in the user's loop from which something was called for the first time.

    Told when it happens, or at the end of a watch."""

    kind: str  # a CallKind
    step: int
    location: Location | None
    optimiser: int = 0
    function: Location | None = None  # where that line's function begins; None: it stands in none


@dataclass(frozen=True)
class Step(Observation):
    """One step of one optimiser.

    `calls` is what the loop did since the step before, in order, repetitions in a row once, as `CallKind`s; the last one says
    on which gradient the step was taken."""

    step: int
    loss: float | None  # None: NaN or Inf
    lr: float | None = None
    gradient_norm: float | None = None  # of the gradients as the step used them: after clipping
    calls: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # how often each of them came, repetitions included
    optimiser: int = 0  # which one, where there are several
    training: bool = True
    # "step": since the end of the one before. Of that, where it was listened to on a CPU: "data" (waiting for loaders),
    # "first-data" (for the first batch of a pass), "forward", "validation" (without a graph), "backward", "optimiser".
    seconds: Mapping[str, float] = field(default_factory=dict)
    unusual: bool = False  # its calls were followed because one of them was new: it does not stand for the steps around it
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
    alone: bool = False  # the model's own flag says training, and nothing below it does
    location: Location | None = None  # where that flag is set by hand
    recalibrating: bool = False  # batch-norms are set to average over everything they see


@dataclass(frozen=True)
class Bystander(Observation):
    """A model in training mode that the backwards before one optimiser's steps reach, each time, and that nobody holds; that
    optimiser holds the very parameters that another one holds."""

    step: int
    name: str
    parameters: int  # tensors
    size: int  # numbers
    optimiser: int
    twin: int  # the other optimiser


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
class Synchronisation(Observation):
    """Calls of one step at which Python waited for a device. A step without any is told as well."""

    step: int
    calls: Mapping[str, int]  # ".item()", ".cpu()", … → how often
    location: Location | None = None  # the line with most of them


@dataclass(frozen=True)
class Recurrence(Observation):
    """What the model was given in training, against what it was given at earlier looks."""

    step: int
    rows: int
    again: int  # of them: the very same as one seen before
    drew: bool | None  # random numbers were drawn while the model was called; None: that could not be seen
    # False: of calls in a row without a graph, in training mode, one row of each but the first, against those of the same step.
    trained: bool = True


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
    by_hand: bool = False  # gradients are values, and the user's own lines add them up

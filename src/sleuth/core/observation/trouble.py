"""What went wrong, where, and who holds what it should not."""

from dataclasses import dataclass

from sleuth.core.location import Location
from sleuth.core.observation.base import Observation, Role


@dataclass(frozen=True)
class Failure(Observation):
    """An exception of the user's code. Kinds: shape, dtype, device, index, batch-of-one, type, arguments, key, name, graph,
    value, worker, other."""

    phase: str  # "data", "forward", "loss", "backward", "step", "script" (none of these)
    error: str
    message: str
    kind: str = "other"
    layer: str | None = None
    expected: str | None = None
    got: str | None = None
    advice: str | None = None
    location: Location | None = None  # to be changed
    raised: Location | None = None  # where that is another line: the one that raised


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
    dtype: str = ""  # of what it made
    constants: tuple[float, ...] = ()  # plain numbers that it was given: an exponent, a divisor
    makers: tuple[str, ...] = ()  # the operations that made the input that broke it, the last one first
    taken_by: str | None = None  # the operation that broke at the zero that this one made of factors that are not zero
    unused: bool = False  # backward: of values that a later `where` does not take
    outside: bool = False  # of the model: in the user's loop or loss
    certain: bool = True  # the step, done again, came to the same values
    batch: int | None = None  # the number of the batch in its pass over the data, from 0
    advice: str | None = None  # what to write instead, where the framework has words of its own for it


@dataclass(frozen=True)
class NotFinite(Observation):
    """NaN or Inf was seen at the very step, before the optimiser wrote. What: loss, gradient; and, where that is not finite
    because of it: input, target, parameter. A gradient that a scaler threw away does not count."""

    step: int
    what: str
    where: str | None = None  # the parameter, or which input
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

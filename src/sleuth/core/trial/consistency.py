"""Whether the same thing done twice, or elsewhere, comes out the same. One frozen class a probe."""

from dataclasses import dataclass

from sleuth.core.trial.kind import Trial


@dataclass(frozen=True)
class Agreement(Trial):
    """The model against the same one elsewhere, which was given its weights. Differences are relative."""

    reference: str  # as a person would call it
    compared: int  # layers, outputs, losses, gradients, steps
    unknown: str | None = None  # why it cannot be told
    stage: str | None = None  # the first that differs: layer, output, loss, gradient, step; None: nothing does
    where: str = ""
    there: str = ""  # its path in the reference
    kind: str = ""
    difference: float = 0.0
    explained: float = 0.0  # what rounding may explain of it
    reason: str | None = None  # a usual one that makes the difference vanish
    tried: tuple[str, ...] = ()  # those that do not


@dataclass(frozen=True)
class TwoTrainings(Trial):
    """The first steps taken twice from the same weights and random states."""

    steps: int
    data_read: int  # batches that were read twice; 0: data were not read again
    data_differs: int | None = None  # the first batch that came out otherwise
    step: int | None = None  # the first step at which anything differs, with the same data
    what: str = ""  # activation, loss, weight
    where: str = ""
    difference: float = 0.0  # relative, of what differs first


@dataclass(frozen=True)
class Reload(Trial):
    """A training that was saved, loaded into a fresh copy and continued, beside one that went on."""

    steps: int  # taken before it was saved
    weights: tuple[str, ...]  # parameters that are not as they were when saved
    statistics: tuple[str, ...]  # other arrays of the model that are not
    output: float  # relative difference of the answers after loading
    step: float  # of the weights' next changes
    lr: tuple[float, float] | None = None  # rates after loading, where they differ: as it was, as it is
    error: str | None = None  # saving or loading raised

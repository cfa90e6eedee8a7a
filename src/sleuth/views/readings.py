"""What a check looks at, in words."""

from sleuth.core.check import Check, Readable
from sleuth.core.observation import (
    Accumulation,
    Architecture,
    Batch,
    Crash,
    Dropped,
    Ending,
    Evaluation,
    Failure,
    Frame,
    LossCall,
    Misfit,
    NotFinite,
    Origin,
    OutOfMemory,
    OutOfRange,
    Predictions,
    Role,
    Settings,
    Step,
    Units,
)

ROLES = {
    Role.INPUT: "what each layer is given",
    Role.ACTIVATION: "what each layer puts out",
    Role.GRADIENT: "the gradient of each parameter",
    Role.WEIGHT: "the values of each parameter",
    Role.UPDATE: "how far each step moves each parameter",
}
OBSERVATIONS: dict[type, str] = {
    Architecture: "the layers and parameters of the model",
    Settings: "the settings of loss and optimiser",
    Batch: "the batches as the data source gives them",
    LossCall: "what the loss is given and what it returns",
    Frame: "statistics of the tensors",
    Units: "the activity of single units",
    Step: "the training steps",
    Evaluation: "the metrics on training and validation data",
    Predictions: "the classes that the model names, against the right ones",
    Accumulation: "what each of several backwards of a step is given",
    Failure: "exceptions of data, forward, loss, backward and step",
    Crash: "the exception that ended the script",
    Ending: "how the training ended",
    Misfit: "a checkpoint that was refused",
    OutOfMemory: "what held memory when there was none left",
    OutOfRange: "an index that was not there, and the table",
    NotFinite: "the first NaN or Inf of a training, and what it came from",
    Origin: "the operation in which the first NaN or Inf is born",
    Dropped: "the steps that were left out",
}


def readings(check: Check) -> list[str]:
    return [_reading(need) for need in check.reads]


def decided_by(check: Check) -> str:
    """The measurement that settles it; where a check does not say so itself, all that it looks at."""
    return check.decided_by or "; ".join(readings(check))


def _reading(need: Readable | tuple[Readable, ...]) -> str:
    options = need if isinstance(need, tuple) else (need,)
    return ", or ".join(_words(option) for option in options)


def _words(what: Readable) -> str:
    if isinstance(what, Role):
        return ROLES[what]
    if what in OBSERVATIONS:
        return OBSERVATIONS[what]
    first = " ".join((what.__doc__ or what.__name__).split()).split(". ")[0].rstrip(".")
    return f"an experiment: {first[0].lower()}{first[1:]}"

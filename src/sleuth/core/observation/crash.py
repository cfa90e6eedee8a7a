"""What an exception that ended the user's code was about."""

from dataclasses import dataclass

from sleuth.core.location import Location
from sleuth.core.observation.base import Observation

# Of a message, in a sentence.
LONGEST = 100
DIED = "the script died of"


@dataclass(frozen=True)
class Crash(Observation):
    """An exception that nobody meant ended the loop or the script. By itself no illness: others say what it was, if that is
    known."""

    step: int  # so many were taken before
    error: str
    message: str = ""  # its first line
    phase: str | None = None  # "data", "forward", "loss", "backward", "step"; None: none of them was going on
    location: Location | None = None  # the last line of the user's own

    @property
    def note(self) -> str:
        """In one sentence."""
        message = self.message if len(self.message) <= LONGEST else f"{self.message[:LONGEST].rpartition(' ')[0]} …"
        said = f": {message.rstrip('.:')}" if message else ""
        at = f", at {self.location.short_file}:{self.location.line}" if self.location is not None else ""
        source = f" ({self.location.text})" if self.location is not None and self.location.text else ""
        during = DURING.get(self.phase or "", "outside of data, forward, backward and step")
        when = f"while step {self.step:,} was {during}" if self.phase else f"{during}, after {self.step:,} steps"
        return f"{DIED} {self.error}{said}{at}{source}, {when}"


DURING = {
    "data": "waiting for its data",
    "forward": "in the forward pass",
    "loss": "in the loss",
    "backward": "in the backward pass",
    "step": "in the optimiser's step",
}


@dataclass(frozen=True)
class OutOfRange(Observation):
    """Something was looked up at a place that is not there. Kinds: embedding, position (the places
    count 0, 1, 2, …), class (of a loss), index (x[i], gather, …)."""

    kind: str
    table: str  # as the user calls it, or the path of the layer
    size: int  # entries along the axis
    lowest: int  # of all that were asked for
    highest: int
    axis: int = 0
    index: str = ""  # the name of what held the places, where it has one
    outside: int = 0  # so many of them are not there
    asked: int = 0  # of so many
    location: Location | None = None  # to be changed
    raised: Location | None = None  # where that is another line: the one that raised

    @property
    def wrong(self) -> int:
        return self.highest if self.highest >= self.size else self.lowest


@dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint or of a model; the shape is None where it is not known."""

    name: str
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Misfit(Observation):
    """A checkpoint was refused. Kinds: names (what differs is listed), nested (the state lies deeper, under `key`), object (no
    state at all: `got`), optimiser (`got` says how), unreadable (the file itself; `got` says how)."""

    kind: str
    into: str  # the class that refused it
    missing: tuple[Entry, ...] = ()  # the model has them, the checkpoint has not
    unexpected: tuple[Entry, ...] = ()  # the reverse
    reshaped: tuple[tuple[Entry, Entry], ...] = ()  # in the checkpoint, in the model
    fitting: int = 0  # so many tensors fit
    key: str | None = None
    got: str = ""
    owner: str = "model"  # as the user's line calls them
    state: str = "state"
    verb: str = "load_state_dict"  # by which it is loaded
    pairs: bool = False  # that takes a list of pairs, no table
    by_file: str = ""  # that takes the path of a file, and these words to load what fits of it
    advice: str | None = None
    location: Location | None = None


@dataclass(frozen=True)
class Held:
    """A part of the memory that was taken when there was none left."""

    what: str  # "parameters", "gradients", "optimiser state", or a tensor as the user calls it
    bytes: int
    count: int = 1
    shape: tuple[int, ...] | None = None
    location: Location | None = None  # the line that adds to it


@dataclass(frozen=True)
class OutOfMemory(Observation):
    """No memory could be had. Sizes in bytes; None where they were not told."""

    step: int
    device: str  # "cpu", "cuda:0"
    asked: int | None = None
    free: int | None = None
    total: int | None = None  # of the machine or the device
    held: tuple[Held, ...] = ()  # what is counted whole: parameters, gradients, optimiser state
    largest: tuple[Held, ...] = ()  # tensors that Python still holds beside those, the largest first
    batch: int | None = None  # samples
    phase: str | None = None  # as in Crash
    layer: str | None = None  # that was running
    location: Location | None = None

"""What goes in, and what the loss is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.location import Location
from sleuth.core.observation.base import Observation, Split
from sleuth.core.statistics import Statistics


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
    location: Location | None = None  # of the last operation on it; of a layer in a container, where that was made
    written: bool = False  # that is the user's own line with the operation


@dataclass(frozen=True)
class LossCall(Observation):
    """One call of a loss function. Families: cross-entropy (of scores), probabilities (cross-entropy of probabilities), nll, bce,
    bce-logits, mse, l1, huber, kl, ctc, hinge, other.

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
    over_batch: bool = False  # a cross-entropy that was seen to take its softmax over the samples
    over_batch_location: Location | None = None
    made_location: Location | None = None  # of the loss object, if it is one and that was seen

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

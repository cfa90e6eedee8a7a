"""What a watch kept of what passed by: enough to examine it when the training is over."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.observation import Observation
from sleuth.core.subject import Parts, Subject


@dataclass(frozen=True)
class Passed:
    """One batch, as the model was given it."""

    step: int
    parts: Parts
    epoch: int | None = None  # of the loader that gave it
    positions: np.ndarray | None = None  # in its data set


@dataclass(frozen=True)
class Group:
    """Batches from one source."""

    batches: Sequence[Passed]
    samples: int  # that passed by in one pass at most, kept or not
    of_its_own: bool = True  # False: of somewhere, it may be of several places, the training data among them
    declared: bool = False  # the user named it validation, so that it is that whatever it holds


@dataclass(frozen=True)
class Kept:
    """`subject` holds the model as it was at the first step, where `at_start`, and a loss only if it can be called again."""

    subject: Subject
    train: Sequence[Passed]
    validation: Sequence[Group] = ()
    first_positions: Sequence[Sequence[int]] = ()  # of the first batch of each epoch, where a sampler told them
    available: int | None = None  # samples of the data set that training draws from, where that is known
    fed_anew: bool = False  # each step was given a batch made for it, not the arrays of the step before once more
    callable: bool = True  # the model is called once a batch
    at_start: bool = False
    first_weights: bool = False  # the model is as it was at the first step, even where its loss cannot be called again
    forbidden: str = ""  # why the model must not be called any more
    remarks: tuple[str, ...] = ()
    noted: tuple[Observation, ...] = ()  # read off what was kept, without an experiment
    batch_size: int | None = None  # the model takes batches of this many samples and no others; None: of any
    only_a_step: str = ""  # no batches were kept, and why: a step can be done again as it was, and nothing else
    compiles: bool = False  # every experiment is compiled before it runs; also where there is a size of batches

    @property
    def is_compiled(self) -> bool:
        return self.compiles or self.batch_size is not None

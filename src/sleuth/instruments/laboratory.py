"""A copy of the user's training to measure on: model, loss, optimiser and some batches. Nothing of it reaches the user's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from sleuth.adapters import adapter_for
from sleuth.core.contract.adapter import LayerValues, Profiles, Steps
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.subject import Parts, Subject, take_apart
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.sources import open_source
from sleuth.views import progress as progress_view

# More than this is read only where an instrument asks for it.
MOST_BATCHES = 64


@dataclass(frozen=True)
class Training:
    """What the user gave, as `sleuth.examine` takes it."""

    model: Any
    data: Any = None
    loss: Callable[..., Any] | None = None
    optimizer: Any = None
    step: Callable[[Any, Any], Any] | None = None
    split: Callable[[Any], tuple[Any, Any]] | None = None
    progress: bool | None = None

    @property
    def subject(self) -> Subject:
        if isinstance(self.model, Subject):
            return self.model
        return Subject(self.model, self.data, self.loss, self.optimizer, None, self.step, self.split)

    @property
    def has_loss(self) -> bool:
        return self.subject.loss is not None or self.subject.step is not None


@contextmanager
def opened(training: Training, batches: int = 1, *, loss: bool = False) -> Iterator[Lab]:
    """`batches` are read into `lab.train.batches`; 0: no data is needed. `loss`: nothing can be done without one."""
    subject = training.subject
    adapter = adapter_for(subject.model)
    if not isinstance(adapter, Steps):
        raise UnusableInput(f"models of {adapter.name} cannot be experimented with yet.")
    if loss and not training.has_loss:
        raise UnusableInput("a loss is missing: give loss=criterion, called as loss(output, target), or step=step(model, batch).")
    with ExitStack() as stack:
        tell = stack.enter_context(progress_view.shown(training.progress))
        stack.enter_context(adapter.preserve(subject))
        lab = Lab(subject, adapter, float("inf"), progress=tell)
        lab.bench_ = stack.enter_context(adapter.bench(subject))
        if lab.bench_.note:
            lab.notes.append(lab.bench_.note)
        if batches:
            lab.train.batches = list(_first(lab, batches))
        try:
            yield lab
        except Unsupported as reason:
            raise UnusableInput(f"{reason}.") from None


def one_pass(lab: Lab) -> Iterator[Parts]:
    for raw in open_source(lab.subject.train, lab.adapter, "data").batches:
        yield take_apart(raw, lab.subject.split)


def endless(lab: Lab) -> Iterator[Parts]:
    """The batches of the source, over and over; what this takes is the time that a loader takes."""
    while True:
        empty = True
        for batch in one_pass(lab):
            empty = False
            yield batch
        if empty:
            raise UnusableInput("data yielded no batch.")


def with_layer_values(lab: Lab) -> LayerValues:
    if not isinstance(lab.adapter, LayerValues):
        raise UnusableInput(f"inside models of {lab.adapter.name} nothing can be heard yet.")
    return lab.adapter


def profiling(lab: Lab) -> Profiles:
    if not isinstance(lab.adapter, Profiles):
        raise UnusableInput(f"models of {lab.adapter.name} cannot be profiled yet.")
    return lab.adapter


def _first(lab: Lab, count: int) -> Iterator[Parts]:
    """Reads no further than it has to: an iterator may count what it has given."""
    number = 0
    for batch in one_pass(lab):
        number += 1
        lab.progress(f"Reading batch {number}")
        yield batch
        if number >= count:
            return
    if not number:
        raise UnusableInput("data yielded no batch.")

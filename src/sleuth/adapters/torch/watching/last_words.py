"""What is said when a watch ends: of the calls that no step followed, and of lines that were run long before they mattered."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sleuth.adapters.torch.failures.given import argument_line
from sleuth.adapters.torch.source_lines import rate_line
from sleuth.adapters.torch.watching import created_at
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.core.observation import Call, Observation, Pending
from sleuth.core.observation.calls import CallKind

if TYPE_CHECKING:
    from sleuth.adapters.torch.watching.pass_calls import PassCalls

# Of the calls that no step followed.
TAIL = 64
# Not one optimiser's.
NOBODY = -1


def last_words(watcher: "PassCalls") -> Iterator[Observation]:
    """What came after the last step."""
    for kind, location, function in watcher.places.take():
        yield Call(kind, watcher.steps, location, NOBODY, function)
    yield from _lines_before(watcher)
    yield from watcher.calls.heard().phases(watcher.steps, NOBODY, last=True)
    yield pending(watcher)


def pending(watcher: "PassCalls") -> Pending:
    heard, optimisers = watcher.calls.heard(), watcher.optimisers
    return Pending(watcher.steps, heard.names[-TAIL:], dict(heard.counts), len(optimisers), optimisers.idle())


def _lines_before(watcher: "PassCalls") -> Iterator[Call]:
    """Of what is done once and long before it matters."""
    model, step, places = watcher.model, watcher.steps, watcher.places
    parts = list(model.children()) if isinstance(model, Several) else [model]
    for spot, training in (mode for part in parts for mode in created_at.modes_of(part)):
        yield Call(CallKind.TRAIN if training else CallKind.EVAL, step, spot.location, NOBODY)
        if training and any(code in (spot.code, *spot.code.co_consts) for code in places.validating):
            yield Call(CallKind.TRAIN_TO_VALIDATE, step, spot.location, NOBODY)
    if watcher.schedule is not None:
        # A function that tells the rate is the schedule itself.
        yield Call(CallKind.MADE_SCHEDULER, step, argument_line(*watcher.schedule, "lr_lambda"), NOBODY)
    elif (line := rate_line({place.file for place in places.lines.values() if place is not None})) is not None:
        yield Call(CallKind.SETS_RATE, step, line, NOBODY)
    if watcher.trained_on is not None:
        yield Call(CallKind.MADE_LOADER, step, watcher.trained_on, NOBODY)

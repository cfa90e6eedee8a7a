"""Reading the user's loop off its steps: who stepped, after which calls, and from which lines."""

from collections import defaultdict
from itertools import pairwise, takewhile
from statistics import median

from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import WITH_GRAPH, Call, CallKind, Ending, Step

# Why a check of the order of calls has nothing to say about an examination, where the loop is ours.
UNHEARD = "the calls of a loop were not seen, only what its steps computed"
FORWARDS = WITH_GRAPH


def heard_steps(seen: Seen) -> dict[int, list[Step]]:
    """Steps by optimiser; only those whose calls were heard."""
    found: dict[int, list[Step]] = defaultdict(list)
    for step in seen.all(Step):
        if step.calls:
            found[step.optimiser].append(step)
    return dict(found)


def share_of(some: list[Step], steps: list[Step]) -> float:
    """Not every step is listened to, and the first ones are more closely: each stands for those until the next one."""
    numbers = sorted(s.step for s in steps if not s.unusual) or [s.step for s in steps]
    gaps: dict[int, float] = {one: other - one for one, other in pairwise(numbers)}
    gaps[numbers[-1]] = median(gaps.values()) if gaps else 1
    return sum(gaps.get(s.step, 0) for s in some) / sum(gaps.values())


def place_of(seen: Seen, *kinds: str, optimiser: int | None = None) -> Location | None:
    """The first line from which one of these was called; that of one optimiser's steps, where it has one."""
    calls = [c for c in seen.all(Call) if c.kind in kinds and c.location is not None]
    mine = [c for c in calls if c.optimiser == optimiser]
    return next((c.location for c in (*mine, *calls)), None)


def since_backward(step: Step) -> tuple[str, ...]:
    """What came between the last backward and the step."""
    calls = step.calls[:-1]
    places = [i for i, call in enumerate(calls) if call == CallKind.BACKWARD]
    return calls[places[-1] + 1 :] if places else calls


def steps_before_backward(step: Step) -> bool:
    """The step finds nothing, because the model was called and the backward of that is yet to come: it comes first after the
    step. A backward that has its own forward before it is over; what the model was called for afterwards, as to draw how it
    sees its input, is another matter."""
    if step.calls[-1] != CallKind.STEP_ON_ERASED_GRADIENT:
        return False
    before = takewhile(lambda call: call != CallKind.BACKWARD, step.calls[:-1])
    return any(call in FORWARDS for call in since_backward(step)) and not any(call in FORWARDS for call in before)


def came_to_its_end(seen: Seen) -> bool:
    return any(ending.how in ("completed", "stopped") for ending in seen.all(Ending))


def began(steps: list[Step], first: Step) -> int | None:
    """The step from which on it was so; None when the loop is written that way: then nothing was before it."""
    early = steps[: max(2, len(steps) // 50)]
    return None if first in early else first.step

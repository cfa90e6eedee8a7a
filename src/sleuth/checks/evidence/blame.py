"""Who is to blame for a step that is not finite, in words: the sample and the operation."""

from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import Call, NotFinite, Origin, Suspect

# More names than these are a list, not an answer.
MOST_NAMED = 2


def samples_blamed(seen: Seen, step: int) -> str:
    """Such as "sample 31,337 of the data set (position 5 of its batch): its input holds NaN"; empty when nobody is known."""
    found = [s for s in seen.all(Suspect) if s.step == step]
    named = [f"{s.name} (position {s.position} of its batch)" if s.index is not None else s.name for s in found[:MOST_NAMED]]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"{' and '.join(named)}{more}: {found[0].reason}" if found else ""


def suspect_at(seen: Seen, step: int) -> Suspect | None:
    return next((s for s in seen.all(Suspect) if s.step == step), None)


def origin_at(seen: Seen, step: int) -> Origin | None:
    return next((o for o in seen.all(Origin) if o.step == step), None)


def born_in(origin: Origin) -> str:
    """Such as "it is born in log of head, which is given -0.31 … 0.9"."""
    of = f" of {origin.layer}" if origin.layer else " in the loss, outside the model" if origin.outside else ""
    ranges = " and ".join(f"{low:.3g} … {high:.3g}" for low, high in origin.inputs[:2])
    back = "the backward of " if origin.direction == "backward" and origin.taken_by is None else ""
    given = f", which {'was' if back else 'is'} given {ranges}" if ranges else ""
    broken = "" if origin.taken_by is None else f", and makes the 0 that {_breaking(origin)} breaks at"
    unused = ", in values that a later where does not take" if origin.unused else ""
    likely = "" if origin.certain else "most likely "
    when = "" if origin.batch is None else f" (batch {origin.batch:,} of its pass over the data)"
    return f"it is {likely}born in {back}{origin.operation}{of}{given}{broken}{unused}{when}"


def _breaking(origin: Origin) -> str:
    return f"{'the backward of ' if origin.direction == 'backward' else ''}{origin.taken_by}"


def causes_at(seen: Seen, step: int) -> list[NotFinite]:
    """What came in like that: an input, a target, a parameter."""
    return [n for n in seen.all(NotFinite) if n.step == step and n.what in ("input", "target", "parameter")]


def came_in(causes: list[NotFinite]) -> list[str]:
    """In words; of a parameter that the optimiser itself has spoilt, for inputs and targets have a check of their own."""
    return [
        f"the weight {c.where} itself holds {c.nans} NaN and {c.infs} Inf before this step: what wrote it last made them, the "
        "optimiser's step or your own code, while the gradients were finite"
        for c in causes
        if c.what == "parameter"
    ]


def line_of(seen: Seen, kind: str) -> Location | None:
    """Of the user's loop, where something is called."""
    return next((c.location for c in reversed(seen.all(Call)) if c.kind == kind), None)

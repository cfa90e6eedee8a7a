"""Who is to blame for a step that is not finite, in words: the sample and the operation."""

from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import Call, Origin, Suspect

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
    of = f" of {origin.layer}" if origin.layer else ""
    ranges = " and ".join(f"{low:.3g} … {high:.3g}" for low, high in origin.inputs[:2])
    back = "the backward of " if origin.direction == "backward" else ""
    given = f", which {'was' if back else 'is'} given {ranges}" if ranges else ""
    return f"it is born in {back}{origin.operation}{of}{given}"


def line_of(seen: Seen, kind: str) -> Location | None:
    """Of the user's loop, where something is called."""
    return next((c.location for c in reversed(seen.all(Call)) if c.kind == kind), None)

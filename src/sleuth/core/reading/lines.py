"""The user's line to change: of a layer, of a weight, of what a loss is given."""

from collections.abc import Iterable

from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Call, CallKind, Layer, LossCall, Optimiser


def layer_of(seen: Seen, path: str | None) -> Layer | None:
    """The layer at a path, or the one that holds the weight at it."""
    architecture = seen.maybe(Architecture)
    if architecture is None or path is None:
        return None
    layers = {layer.path: layer for layer in architecture.layers}
    return layers.get(path) or next((layers.get(p.layer) for p in architecture.parameters if p.path == path), None)


def layer_line(seen: Seen, path: str | None) -> Location | None:
    """Where it was made."""
    layer = layer_of(seen, path)
    return None if layer is None else layer.location


def line_of(seen: Seen, where: str | None) -> Location | None:
    """Of whatever a finding is about, if that is a layer or a weight."""
    architecture = seen.maybe(Architecture)
    if architecture is None or where is None:
        return None
    weight = next((p for p in architecture.parameters if p.path == where), None)
    # A weight that belongs to no layer of its framework has a line of its own.
    if weight is not None and weight.family in ("other", "container") and weight.location is not None:
        return weight.location
    return layer_line(seen, where)


def weight_line(seen: Seen, *paths: str) -> Location | None:
    """Where the first of these weights got its values from the user, else where its layer was made. Of a layer's path its
    weights are meant."""
    architecture = seen.maybe(Architecture)
    parameters = architecture.parameters if architecture is not None else ()
    for path in paths:
        own = [p.location for p in parameters if (p.path == path or p.layer == path) and p.location is not None]
        if own:
            return own[-1]
    return next((line for path in paths if (line := layer_line(seen, path)) is not None), None)


def feeding_line(seen: Seen, path: str) -> Location | None:
    """Of the weights that feed an activation, in the order of the model: where they got their values or, failing that, where
    the activation itself was made."""
    architecture = seen.maybe(Architecture)
    order = [layer.path for layer in architecture.layers] if architecture is not None else []
    before = order[: order.index(path) + 1] if path in order else []
    weights = [p for p in architecture.parameters if p.layer in before] if architecture is not None else []
    if not weights:
        return None
    nearest = max(before.index(p.layer) for p in weights)
    given = [p.location for p in weights if p.layer == before[nearest] and p.location is not None]
    return given[-1] if given else layer_line(seen, path)


def optimiser_line(seen: Seen, number: int | None = None) -> Location | None:
    """Where it was made."""
    made = [o for o in seen.all(Optimiser) if o.location is not None and number in (None, o.number)]
    if made or number is not None:
        return made[0].location if made else None
    # Of one that keeps no state nothing more may be known.
    return next((c.location for c in seen.all(Call) if c.kind == CallKind.MADE_OPTIMISER and c.location is not None), None)


def producer_line(calls: Iterable[LossCall]) -> Location | None:
    """Of the operation that made the values which the loss is given."""
    outputs = [call.argument("output") for call in calls]
    return next((o.producer_location for o in outputs if o is not None and o.producer_location is not None), None)


def output_line(calls: Iterable[LossCall], *, written: bool = False) -> Location | None:
    """Of the last operation on what the loss is given; `written`: only a line of the user's with the operation itself."""
    outputs = [call.argument("output") for call in calls]
    fits = [o for o in outputs if o is not None and o.location is not None and (o.written or not written)]
    return fits[0].location if fits else None


def beside(location: Location | None, other: Location | None) -> str:
    """The other line, where it is another one: for the text."""
    if location is None or other is None or (location.file, location.line) == (other.file, other.line):
        return ""
    return f" (line {other.line})" if location.file == other.file else f" ({other.short_file}:{other.line})"

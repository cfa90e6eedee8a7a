"""Two models side by side, from the weights to the first step of the optimiser."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sleuth.comparing.carrying import Twin, carry, read, turned_over, twins, with_columns
from sleuth.comparing.distance import apart, values_apart
from sleuth.comparing.heard import Value, aligned, listen
from sleuth.comparing.looking import Look, Wide, explained, look, widened
from sleuth.comparing.matching import Match, match
from sleuth.comparing.result import Row
from sleuth.comparing.side import Side, runs, turns
from sleuth.comparing.unit import units_of

# Weights that two initialisers draw this much wider or narrower are drawn by different rules.
OTHER_WIDTH = 1.25
FEW_NUMBERS = 64


@dataclass(frozen=True)
class Joined:
    """Both sides with the same weights, as far as they could be carried, and what their layers then say."""

    first: Side
    other: Side
    twins: list[Twin]
    match: Match
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    wide: tuple[Wide, Wide]
    looks: tuple[Look, Look]
    layers: tuple[tuple[Row, Value, Value], ...]

    @property
    def epsilon(self) -> float:
        return max(self.first.epsilon, self.other.epsilon)

    @property
    def parted(self) -> int | None:
        return next((i for i, (row, _, _) in enumerate(self.layers) if row.differs), None)


def join(first: Side, other: Side, names: Mapping[str, str] | None, carries: bool) -> Joined:
    training = any(s.keeps_statistics for s in (first, other)) and not any(s.has_dropout for s in (first, other))
    first, other = replace(first, training=training), replace(other, training=training)
    for side in (first, other):
        side.as_compared()
    matched = match(units_of(first), units_of(other), names)
    pairs = _flattened(first, other, twins(matched, first.adapter.name == other.adapter.name))
    notes = tuple(_starts(first, other, pairs)) if carries else ("weights were not carried over: each model has its own",)
    if training:
        notes = (*notes, "compared in training mode: running statistics cannot be carried over there")
    joined = _joined(first, other, pairs, matched, notes, carries)
    if not carries or joined.parted is None:
        return joined
    return _turned(joined)


def _joined(first: Side, other: Side, pairs: list[Twin], matched: Match, notes: tuple[str, ...], carries: bool) -> Joined:
    problems = tuple(carry(first, other, pairs)) if carries else ()
    wide = widened(first), widened(other)
    looks = look(first, wide[0]), look(other, wide[1])
    joined = Joined(first, other, pairs, matched, problems, notes, wide, looks, ())
    return replace(joined, layers=tuple(_rows(joined)))


def _rows(joined: Joined) -> list[tuple[Row, Value, Value]]:
    mine, yours = joined.looks
    layers = {t.first.path: t.other.path for t in joined.twins}
    found = []
    for a, b in aligned(mine.values, yours.values, layers):
        difference, remark = values_apart(a, b)
        noise = explained(joined.epsilon, mine.noise.get(a.path, 0.0), yours.noise.get(b.path, 0.0))
        found.append((Row("layer", a.path, b.path, a.activation or a.kind, difference, noise, remark), a, b))
    return found


def _turned(joined: Joined) -> Joined:
    """Where a shape does not say which way a matrix or an image lies, the reading that brings the models closer is right."""
    best = joined
    if any(not t.layout[1].certain for t in joined.twins):
        found = _joined(joined.first, joined.other, turned_over(joined.twins), joined.match, joined.notes, True)
        best = _closer(best, found)
    if best.parted == 0:
        for batch in turns(joined.other.batch):
            other = replace(joined.other, batch=batch)
            if not runs(other, batch):
                continue
            found = _joined(joined.first, other, best.twins, best.match, best.notes, True)
            note = f"{other.name} was given the images with their channels at the other end"
            best = _closer(best, replace(found, notes=(*found.notes, note)))
    if best is not joined and best.twins is joined.twins:
        return best
    carry(best.first, best.other, best.twins)  # what was tried last need not be what is best
    return best


def _closer(one: Joined, two: Joined) -> Joined:
    def reach(joined: Joined) -> int:
        return len(joined.layers) + 1 if joined.parted is None else joined.parted

    return two if reach(two) > reach(one) else one


def _flattened(first: Side, other: Side, pairs: list[Twin]) -> list[Twin]:
    """Behind a flatten the inputs of a linear layer stand in the order of the image's axes, which frameworks do not share."""
    if not any(len(v.shapes.get("weight", ())) > 2 for t in pairs for v in (t.first, t.other)):
        return pairs
    heard = listen(first, first.bench), listen(other, other.bench)
    return [with_columns(t, (_columns(heard[0], t.first.path), _columns(heard[1], t.other.path))) for t in pairs]


def _columns(heard: list[Value], path: str) -> np.ndarray | None:
    at = next((i for i, v in enumerate(heard) if v.layer == path and v.values is not None and v.values.ndim == 2), None)
    for value in reversed(heard[:at] if at is not None else []):
        if value.values is None:
            return None
        if value.values.ndim > 2:
            shape = value.values.shape[1:]
            if value.axis % value.values.ndim == value.values.ndim - 1:
                return None
            return np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), value.axis - 1, -1).ravel()
    return None


def _starts(first: Side, other: Side, pairs: list[Twin]) -> list[str]:
    """Before anything is carried: do both draw their first weights alike?"""
    for twin in pairs:
        mine, yours = (
            next((v for r, v in read(side, unit).items() if r.startswith("weight")), np.zeros(0))
            for side, unit in ((first, twin.first), (other, twin.other))
        )
        if min(mine.size, yours.size) < FEW_NUMBERS or not mine.std() or not yours.std():
            continue
        ratio = float(yours.std() / mine.std())
        # The spread of n drawn numbers is itself uncertain by about 1 / sqrt(2n).
        if max(ratio, 1 / ratio) > OTHER_WIDTH + 4 / np.sqrt(2 * min(mine.size, yours.size)):
            names = f"{first.name} {mine.std():.3g}, {other.name} {yours.std():.3g}"
            return [f"they began with weights drawn otherwise: the spread in {twin.first.path or 'the model'} was {names}"]
    return []


def output_rows(joined: Joined) -> list[Row]:
    found = []
    outputs = [side.outputs(wide.bench) for side, wide in ((joined.first, joined.wide[0]), (joined.other, joined.wide[1]))]
    plain = joined.first.outputs(), joined.other.outputs()
    for i, (a, b) in enumerate(zip(*outputs, strict=False)):
        name = "output" if len(outputs[0]) == 1 else f"output[{i}]"
        noise = explained(joined.epsilon, apart(a, plain[0][i]), apart(b, plain[1][i]), _last_noise(joined))
        if a.shape != b.shape and np.squeeze(a).shape != np.squeeze(b).shape:
            found.append(Row("output", name, name, f"{a.shape} and {b.shape}", float("inf"), noise, "other shape"))
        else:
            found.append(Row("output", name, name, str(a.shape), apart(np.squeeze(a), np.squeeze(b)), noise))
    return found


def _last_noise(joined: Joined) -> float:
    """Where there is no float64 to measure by, what was measured of the last layer."""
    if all(wide.bench is not None for wide in joined.wide):
        return 0.0
    return max((list(look.noise.values())[-1] for look in joined.looks if look.noise), default=0.0)

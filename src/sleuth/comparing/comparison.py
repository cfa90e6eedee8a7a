"""The whole comparison: every model against the first."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.comparing import learning, pairing
from sleuth.comparing.pairing import Joined
from sleuth.comparing.reasons import learning as learned
from sleuth.comparing.reasons.layers import layer_reasons
from sleuth.comparing.result import DIFFERS, FAILED, SAME, UNKNOWN, Backend, Comparison, Pair, Reason, Row
from sleuth.comparing.side import CannotRun, Side, opened
from sleuth.core.contract.adapter import Adapter
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.subject import Parts, Subject

FLOAT64 = "rounding told apart by computing both in float64 as well"
JITTER = "rounding told apart by moving every weight by one rounding error"


@dataclass(frozen=True)
class Entry:
    """A model to compare, with the adapter that knows it and the batch that it is given."""

    name: str
    adapter: Adapter
    subject: Subject
    batch: Parts


def compare(entries: Sequence[Entry], names: Mapping[str, str] | None = None, carries: bool = True) -> Comparison:
    reference, *others = entries
    backends: list[Backend] = []
    pairs: list[Pair] = []
    with ExitStack() as stack:
        try:
            first = stack.enter_context(opened(reference.name, reference.adapter, reference.subject, reference.batch))
        except CannotRun as error:
            raise UnusableInput(f"{reference.name} cannot be run on this batch: {error}.") from None
        backends.append(backend_of(first, SAME))
        for entry in others:
            pair, backend = _against(first, entry, names, carries)
            pairs.append(pair)
            backends.append(backend)
    return Comparison(tuple(backends), tuple(pairs))


def _against(first: Side, entry: Entry, names: Mapping[str, str] | None, carries: bool) -> tuple[Pair, Backend]:
    try:
        with opened(entry.name, entry.adapter, entry.subject, entry.batch) as other:
            before = first.bench.snapshot()
            try:
                pair = pair_of(first, other, names, carries)
                return pair, backend_of(other, pair.status)
            finally:
                first.bench.restore(before)
    except (CannotRun, Unsupported) as error:
        pair = Pair(first.name, entry.name, FAILED, 0, 0, (), "", (), (), (), (), str(error))
        return pair, Backend(entry.name, entry.adapter.name, "", FAILED, None, None, None, str(error))


def pair_of(first: Side, other: Side, names: Mapping[str, str] | None = None, carries: bool = True) -> Pair:
    joined = pairing.join(first, other, names, carries)
    rows = [row for row, _, _ in joined.layers]
    reasons: list[Reason] = []
    tried: list[str] = []
    notes = [*joined.notes, *_heads(joined)]
    if joined.parted is not None:
        reasons, tried = layer_reasons(joined, joined.parted)
    rows += pairing.output_rows(joined)
    if not (first.has_loss and other.has_loss):
        notes.append("loss, gradients and steps were not compared: give both a loss")
    else:
        more, why, without = _learning(joined, any(row.differs for row in rows), notes)
        rows += more
        reasons, tried = reasons or why, tried or without
    return _pair(joined, rows, reasons, tried, notes)


def _learning(joined: Joined, parted: bool, notes: list[str]) -> tuple[list[Row], list[Reason], list[str]]:
    """What comes later differs by itself once something before does: reasons are sought for the first alone."""
    rows: list[Row] = []
    why: tuple[list[Reason], list[str]] = ([], [])
    training = not (joined.first.has_dropout or joined.other.has_dropout)
    if not training:
        notes.append("gradients and the step were taken in evaluation mode: dropout draws its own numbers in each framework")
    try:
        loss = learning.loss_row(joined)
        rows.append(loss)
        if loss.differs and not parted:
            why, parted = learned.loss_reasons(joined, loss), True
        found, slopes = learning.gradients(joined, training)
        rows += found
        first = next((row for row in found if row.differs), None)
        if first is not None and not parted:
            why, parted = learned.gradient_reasons(first, slopes), True
        if joined.first.settings.optimiser is None or joined.other.settings.optimiser is None:
            notes.append("the step was not compared: give both an optimiser")
            return rows, *why
        found, moves = learning.step_rows(joined, training, slopes)
        rows += found
        first = next((row for row in found if row.differs), None)
        if first is not None and not parted:
            why = learned.step_reasons(joined, first, slopes, moves)
        notes += _options(joined)
    except Unsupported as error:
        notes.append(f"not compared any further: {error}")
    except Exception as error:  # the user's loss may not take what the other framework gives it
        notes.append(f"not compared any further: {type(error).__name__}: {error}")
    return rows, *why


def _heads(joined: Joined) -> list[str]:
    """The weights of an attention do not tell into how many heads they are split."""
    sides = joined.first, joined.other
    mine, yours = ([x for x in s.architecture.layers if x.family == "attention" and "heads" in x.settings] for s in sides)
    apart = [(a, b) for a, b in zip(mine, yours, strict=False) if a.settings["heads"] != b.settings["heads"]]
    return [f"{a.path} has {a.settings['heads']} heads, {b.path} has {b.settings['heads']}" for a, b in apart]


def _options(joined: Joined) -> list[str]:
    """Settings that show only after several steps."""
    mine, yours = (dict(side.settings.optimiser_options) for side in (joined.first, joined.other))
    apart = [f"{k} {mine[k]} and {yours[k]}" for k in sorted(mine.keys() & yours.keys()) if mine[k] != yours[k]]
    return [f"settings of the optimisers that differ: {', '.join(apart)}"] if apart else []


def _pair(joined: Joined, rows: list[Row], reasons: list[Reason], tried: list[str], notes: list[str]) -> Pair:
    first, other = joined.first, joined.other
    missing = [f"{u.path or ', '.join(u.tensors.values())}: only {first.name} has it" for u in joined.match.first_only]
    missing += [f"{u.path or ', '.join(u.tensors.values())}: only {other.name} has it" for u in joined.match.other_only]
    problems = (*joined.problems, *missing)
    failed = {problem.split(":")[0] for problem in joined.problems}
    carried = sum(len(t.first.tensors) - len(t.first.statistics) for t in joined.twins if t.first.path not in failed)
    wide = all(w.bench is not None for w in joined.wide)
    whys = {f"no float64 for {s.name}: {w.reason}" for s, w in zip((first, other), joined.wide, strict=True) if w.bench is None}
    total = sum(p.tied_to is None for p in first.parameters)
    apart = any(row.differs for row in rows)
    status = UNKNOWN if problems and apart else DIFFERS if apart else SAME
    if joined.match.guessed and apart:
        notes.append("layers of one size were matched by their order: names={path: path} says it where that is wrong")
    precision = FLOAT64 if wide else JITTER
    return Pair(
        first.name,
        other.name,
        status,
        carried,
        total,
        problems,
        precision,
        tuple(rows),
        tuple(reasons),
        tuple(tried),
        (*notes, *sorted(whys)),
    )


def backend_of(side: Side, status: str) -> Backend:
    loss: float | None = None
    side.bench.set_training(False)
    outputs = side.outputs()
    if side.has_loss:
        try:
            loss = side.bench.loss(side.batch)
        except Exception:  # said where the losses are compared
            loss = None
    shape = tuple(outputs[0].shape) if outputs else None
    finite = all(bool(np.isfinite(o).all()) for o in outputs if o.dtype.kind == "f")
    version = next(iter(side.settings.versions.values()), "")
    return Backend(side.name, side.adapter.name, version, status, shape, finite, loss)


def as_subject(thing: Any) -> Subject:
    if isinstance(thing, Subject):
        return thing
    if isinstance(thing, Mapping) and "model" in thing:
        known = {"model", "train", "loss", "optimizer", "step", "split", "name"}
        return Subject(**{"train": None, **{k: v for k, v in thing.items() if k in known}})
    return Subject(thing, None)

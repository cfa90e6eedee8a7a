"""Reads training and validation data once, and notes what passes by."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput
from sleuth.core.location import Location, locate
from sleuth.core.observation import Batch, Failure, Observation, Split
from sleuth.core.reading.batch_facts import Contents, class_labels, contents, describe_batch, labels_of
from sleuth.core.runtime.place import is_users, location_of
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.fingerprints.sketch import note_sketch
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.roles import observe_roles
from sleuth.probes.lab.sources import open_source

__all__ = ["class_labels", "note", "reading"]

# Experiments draw their batches from these; more would only cost memory.
KEPT_BATCHES = 64
KEPT_BYTES = 256 * 1024**2
# Statistics of more batches than this tell nothing new; NaN, fingerprints and labels are looked for in all of them.
MEASURED_BATCHES = 256
# The batches that the first pass listens to are measured whatever the stride.
FIRST_BATCHES = 8
# A training set that is too large to be read in time leaves this much of it for validation.
TRAIN_SHARE = 0.7
# A source without a length may have no end: reading stops here, and says so.
MOST_UNSIZED_BATCHES = 4096


@probe(title="Reading the data", stage=Stage.DATA, rank=0, emits=(Batch,), share=0.2)
def reading(lab: Lab) -> Iterator[Observation]:
    until = lab.probe_deadline
    if lab.subject.validation is not None:
        lab.probe_deadline = lab.clock() + TRAIN_SHARE * (until - lab.clock())
    yield from _read(lab, lab.subject.train, lab.train)
    lab.probe_deadline = until
    if lab.subject.validation is not None:
        lab.validation = Readings(Split.VALIDATION)
        yield from _read(lab, lab.subject.validation, lab.validation)


def _read(lab: Lab, given: Any, readings: Readings) -> Iterator[Observation]:
    name = readings.split.value
    source = open_source(given, lab.adapter, name)
    readings.order_is_ours = source.order_is_ours
    length = _length(source.batches)
    stride = 1 if length is None else -(-length // MEASURED_BATCHES)
    read = 0
    try:
        for read, raw in enumerate(source.batches, start=1):
            yield from _take(lab, raw, readings, read - 1, stride)
            if (reason := _enough(lab, read, length)) is not None:
                lab.notes.append(f"{name}: read {readings.samples} samples in {read} batches, then stopped: {reason}")
                break
        else:
            readings.complete = True
    except UnusableInput:
        raise
    except Exception as error:
        yield _explain(error, lab, readings)
    if not read:
        raise UnusableInput(
            f"{name} ({type(given).__name__}) yielded no batch. Check that the data set is not empty and that drop_last=True "
            "does not drop its only batch."
        )


def _take(lab: Lab, raw: Any, readings: Readings, index: int, stride: int) -> Iterator[Observation]:
    if index == 0 and readings is lab.train:
        observe_roles(lab, raw)
    batch = contents(take_apart(raw, lab.subject.split), lab.adapter)
    facts = None
    # A step of the user's own may feed what sleuth cannot look into, such as a graph object.
    if batch.inputs or lab.subject.step is None:
        measured = index < FIRST_BATCHES or (index % stride == 0 and index // stride < MEASURED_BATCHES)
        if measured or not batch.is_finite:
            facts = describe_batch(batch, readings.split, index, lab.adapter)
        note(batch, readings)
        note_sketch(lab, batch, readings)
    _keep(batch, readings)
    readings.samples += batch.size
    if facts is not None:
        yield facts


def _enough(lab: Lab, read: int, length: int | None) -> str | None:
    if lab.time_is_up():
        return "the time for reading was used up"
    return "the source has no length" if length is None and read >= MOST_UNSIZED_BATCHES else None


def _length(batches: Iterable[Any]) -> int | None:
    try:
        return len(batches)  # type: ignore[arg-type]
    except TypeError:  # an iterable without a length, or a loader over one
        return None


def _explain(error: Exception, lab: Lab, readings: Readings) -> Failure:
    """Without a single batch there is nothing to examine; what came before a later failure still counts."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    # A worker process of a loader sends its whole traceback as the message; what was wrong stands last.
    sent = "Traceback" in str(error)
    text = lines[-1] if sent else f"{type(error).__name__}: {lines[0] if lines else ''}"
    told = lab.bench_.explain_failure(error, "data") if lab.bench_ is not None else None
    known = told if isinstance(told, Failure) else Failure("data", type(error).__name__, text)
    place = _place_in(lines) if sent else location_of(error.__traceback__)
    where = f" ({place})" if place else ""
    name = readings.split.value
    if not readings.batches:
        advice = f"To do: {known.advice}." if known.advice else f"Make next(iter({name})) work first."
        raise UnusableInput(f"{name} fails at its first batch: {text}{where}. {advice}") from None
    message = f"reading {name} fails after {readings.samples} samples: {text}"
    lab.notes.append(f"{message}{where}; what came before was examined")
    advice = known.advice or f"make list({name}) run through to its end"
    return replace(known, message=message, location=place, advice=advice)


def _place_in(lines: list[str]) -> Location | None:
    """The innermost line of the user's in a traceback that came as text."""
    places = (re.match(r'\s*File "(.+)", line (\d+)', line) for line in lines)
    own = [(p[1], int(p[2])) for p in places if p is not None and is_users(p[1])]
    return locate(*own[-1]) if own else None


def _keep(batch: Contents, readings: Readings) -> None:
    size = sum(a.values.nbytes for a in (*batch.inputs, *batch.targets))
    if len(readings.batches) < KEPT_BATCHES and (readings.kept_bytes + size <= KEPT_BYTES or not readings.batches):
        readings.batches.append(batch.parts)
        readings.kept_bytes += size


def note(batch: Contents, readings: Readings) -> None:
    """Fingerprints and labels, as far as there is one of them a sample."""
    arrays = [part for a in batch.inputs if a.values.ndim and len(a.values) == batch.size for part in _parts(a.values)]
    if arrays:
        exact, rounded = fingerprints(arrays)
        readings.exact.append(exact)
        readings.rounded.append(rounded)
    labels = labels_of(batch.targets)
    if labels is not None and len(labels) == batch.size:
        readings.labels.append(labels)


def _parts(values: np.ndarray) -> list[np.ndarray]:
    return [values.real, values.imag] if values.dtype.kind == "c" else [values]

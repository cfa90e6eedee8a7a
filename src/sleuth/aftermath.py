"""After the end of a script: what passed by is examined, as far as it was kept, and the model as it was at its first step."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.core.adapter import Adapter, Emit, Steps
from sleuth.core.batch_facts import contents
from sleuth.core.kept import Kept, Passed
from sleuth.core.observation import Absent, Batch, Frame, Observation, Split
from sleuth.core.stage import Stage
from sleuth.core.subject import Subject
from sleuth.core.trial import Feeding, Order, Overlap, Repeats
from sleuth.probes.examination import run_probe
from sleuth.probes.feeding import feeding
from sleuth.probes.gathering import gather, validation_of
from sleuth.probes.order import order
from sleuth.probes.probe import Lab, Probe, Readings, all_probes
from sleuth.probes.reading import note
from sleuth.probes.repeats import repeats

# These would need the user's own loader: its workers, its second pass, the size of its batches.
OF_THE_LOADER = ("worker_noise", "second_pass", "gradient_noise")
# What can be asked of a model whatever its weights are, and without its loss.
OF_ANY_WEIGHTS = ("describing", "first_pass", "flowing", "causality", "dependence", "modes", "counting")


class Aftermath:
    def __init__(self, adapter: Adapter, kept: Kept, seconds: float, has: Callable[[Any], bool]) -> None:
        """`has`: was this kind of observation made while the training ran? What was seen there counts more."""
        self._adapter, self._kept, self._seconds, self._has = adapter, kept, seconds, has
        self._train = gather(kept.train, adapter)
        self._validation = validation_of(kept, self._train, adapter)
        self.notes: list[str] = []

    def examine(self, emit: Emit, progress: Callable[[str], None]) -> None:
        self._examine_order(emit, progress)
        lab = Lab(self._subject(), self._adapter, self._seconds, progress=progress)
        with ExitStack() as stack:
            stack.enter_context(self._adapter.preserve(lab.subject))
            if isinstance(self._adapter, Steps):
                lab.bench_ = stack.enter_context(self._adapter.bench(lab.subject))
            for probe in all_probes():
                self._run(probe, lab, emit)
        self.notes += lab.notes

    def _run(self, probe: Probe, lab: Lab, emit: Emit) -> None:
        if probe in (order, feeding, repeats):
            return
        reason = self._obstacle(probe)
        if reason:
            for what in probe.emits:
                self._pass_on(Absent(what, reason), emit)
            return
        run_probe(probe, lab, lambda observation: self._pass_on(observation, emit))
        if probe.name == "reading":
            lab.train.complete = self._is_complete
            if lab.validation is not None:
                lab.validation.complete = False

    def _obstacle(self, probe: Probe) -> str:
        if probe.name in OF_THE_LOADER:
            return "it needs the loader itself, which a script keeps for itself"
        if probe.stage is Stage.DATA:
            return ""
        why = "; ".join(self._kept.remarks) or "the model as it was at the first step was not kept"
        if not self._kept.callable:
            return why
        return "" if self._kept.at_start or probe.name in OF_ANY_WEIGHTS else why

    def _pass_on(self, observation: Observation, emit: Emit) -> None:
        match observation:
            case Batch():
                new = observation.split is Split.VALIDATION
            case Absent():
                new = not self._has(observation.what)
            case Overlap() if self._validation is not None and not self._validation.of_its_own:
                emit(Absent(Overlap, "where the validation samples come from cannot be told"))
                return
            case Frame():
                new = False
            case _:
                new = not self._has(type(observation))
        if new:
            emit(observation)

    def _subject(self) -> Subject:
        train, validation = self._train, None if self._validation is None else self._validation.gathered
        if train.arrays is None or (validation is not None and validation.arrays is None):
            batches = None if validation is None else validation.batches
            return replace(self._kept.subject, train=train.batches, validation=batches, split=lambda raw: raw)
        arrays = None if validation is None else validation.arrays
        return replace(self._kept.subject, train=train.arrays, validation=arrays, split=train.form)

    @property
    def _is_complete(self) -> bool:
        return self._train.positioned and len(self._train) == self._kept.available

    # The order in which batches came: asked of the first ones, which follow each other.

    def _examine_order(self, emit: Emit, progress: Callable[[str], None]) -> None:
        if not self._kept.callable:
            for what in (Order, Feeding, Repeats):
                emit(Absent(what, "the model is called several times before each backward"))
            return
        first = _in_a_row(self._kept.train)
        subject = Subject(self._kept.subject.model, [p.parts.raw for p in first], split=lambda raw: raw)
        lab = Lab(subject, self._adapter, self._seconds, progress=progress)
        lab.train = self._readings(first)
        self._ask(order, lab, emit)
        self._ask(feeding, lab, emit)
        epoch = [p for p in first if p.epoch == first[0].epoch and p.positions is not None]
        drawn = np.concatenate([p.positions for p in epoch if p.positions is not None]) if epoch else np.array([])
        if not len(drawn) or len(np.unique(drawn)) < len(drawn):
            emit(Absent(Repeats, "which samples of the data set these are, and whether they come again, is not known"))
        else:
            lab.train = self._readings(epoch)
            self._ask(repeats, lab, emit)

    def _ask(self, probe: Probe, lab: Lab, emit: Emit) -> None:
        def as_it_came(observation: Observation) -> None:
            match observation:
                case Order():
                    same = self._same_order()
                    emit(replace(observation, batches_fixed=False, epochs_in_same_order=same, complete=False))
                case Feeding():
                    available = self._kept.available
                    if observation.distinct > 1 or (available is not None and available > observation.samples):
                        emit(replace(observation, available=available, listed=False, complete=False))
                    else:
                        emit(Absent(Feeding, "each batch may be all the data there is"))
                case _:
                    emit(observation)

        run_probe(probe, lab, as_it_came)

    def _readings(self, batches: list[Passed]) -> Readings:
        readings = Readings(Split.TRAIN)
        for passed in batches:
            found = contents(passed.parts, self._adapter)
            note(found, readings)
            readings.batches.append(passed.parts)
            readings.samples += found.size
        return readings

    def _same_order(self) -> bool | None:
        known = [tuple(positions) for positions in self._kept.first_positions]
        return None if len(known) < 2 else len(set(known)) == 1


def _in_a_row(batches: "list[Passed] | Any") -> list[Passed]:
    found: list[Passed] = []
    for passed in batches:
        if found and not 0 <= passed.step - found[-1].step <= 1:
            break
        found.append(passed)
    return found

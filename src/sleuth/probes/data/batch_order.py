"""In which order batches came, asked of the first ones that passed by: these follow each other."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sleuth.core.contract.adapter import Adapter, Emit
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.observation import Absent, Observation, Split
from sleuth.core.reading.batch_facts import contents
from sleuth.core.subject import Subject
from sleuth.core.trial import Feeding, Order, Repeats
from sleuth.probes.data.reading import note
from sleuth.probes.data.repeats import repeats
from sleuth.probes.data.same_batch import feeding
from sleuth.probes.data.sample_order import order
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab, Probe, Readings

PROBES: tuple[Probe, ...] = (order, feeding, repeats)


class Sequenced:
    def __init__(self, kept: Kept, adapter: Adapter, seconds: float, validation_samples: int | None) -> None:
        self._kept, self._adapter, self._seconds = kept, adapter, seconds
        self._validation_samples = validation_samples

    def examine(self, emit: Emit, progress: Callable[[str], None]) -> None:
        if not self._kept.callable:
            for what in (Order, Feeding, Repeats):
                emit(Absent(what, "the model is called several times before each backward"))
            return
        first = _in_a_row(self._kept.train)
        subject = Subject(self._kept.subject.model, [p.parts.raw for p in first], split=lambda raw: raw)
        lab = Lab(subject, self._adapter, self._seconds, progress=progress)
        lab.train = self._readings(first)
        run_probe(order, lab, lambda found: emit(self._as_it_came(found)))
        run_probe(feeding, lab, lambda found: emit(self._as_it_came(found)))
        epoch = [p for p in first if p.epoch == first[0].epoch and p.positions is not None]
        drawn = np.concatenate([p.positions for p in epoch if p.positions is not None]) if epoch else np.array([])
        if not len(drawn) or len(np.unique(drawn)) < len(drawn):
            emit(Absent(Repeats, "which samples of the data set these are, and whether they come again, is not known"))
            return
        lab.train = self._readings(epoch)
        whole = len(drawn) == self._kept.available
        # Each of these has a place of its own in the data set: it does not come again on purpose.
        run_probe(repeats, lab, lambda o: emit(replace(o, unending=False, complete=whole) if isinstance(o, Repeats) else o))

    def _as_it_came(self, observation: Observation) -> Observation:
        match observation:
            case Order():
                return replace(observation, batches_fixed=False, epochs_in_same_order=self._same_order(), complete=False)
            case Feeding():
                return self._fed(observation)
        return observation

    def _fed(self, found: Feeding) -> Observation:
        available = self._kept.available
        told = replace(
            found,
            available=available,
            listed=False,
            complete=False,
            by_hand=available is None,
            validation_samples=self._validation_samples,
        )
        if found.distinct > 1:
            return told
        if not self._kept.fed_anew:
            return Absent(Feeding, "the loop gives the same arrays again and again: they may be all the data there is")
        more = available if available is not None else self._validation_samples
        if more is None or more <= found.samples:
            return Absent(Feeding, "each batch may be all the data there is")
        return told

    def _readings(self, batches: Sequence[Passed]) -> Readings:
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


def _in_a_row(batches: Sequence[Passed]) -> list[Passed]:
    found: list[Passed] = []
    for passed in batches:
        if found and not 0 <= passed.step - found[-1].step <= 1:
            break
        found.append(passed)
    return found

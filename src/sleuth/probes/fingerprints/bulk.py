"""Fingerprints of a whole data set that its loader would take too long to give, read in bulk where it stands in arrays."""

from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Rows
from sleuth.core.reading.batch_facts import contents
from sleuth.core.subject import take_apart
from sleuth.probes.data.reading import note
from sleuth.probes.fingerprints.sketch import note_sketch
from sleuth.probes.lab.probe import Lab, Readings
from sleuth.probes.lab.samples import data_rows

# Samples that are read between two looks at the clock: from arrays, and one by one.
CHUNK, SLOW_CHUNK = 8192, 256


def whole_prints(lab: Lab, source: Any, readings: Readings) -> Readings:
    """What was read, where that is all or all cannot be had: the first part of a data set may be unlike the rest."""
    if readings.complete:
        return readings
    rows = data_rows(source, lab.adapter)
    if rows is None or not rows.bulk or not rows.whole:
        return readings
    found = read_in_bulk(lab, rows, readings)
    return found if found.complete else readings


def read_in_bulk(lab: Lab, rows: Rows, readings: Readings) -> Readings:
    """In the data set's own order; a part of it where time runs out."""
    if readings.split not in lab.prints:
        found = Readings(readings.split)
        size = CHUNK if rows.bulk else SLOW_CHUNK
        for start in range(0, rows.count, size):
            positions = np.arange(start, min(start + size, rows.count))
            batch = contents(take_apart(rows.take(positions), lab.subject.split), lab.adapter)
            note(batch, found)
            note_sketch(lab, batch, found)
            found.samples += len(positions)
            if lab.time_is_up():
                break
        found.complete = found.samples == rows.count
        lab.prints[readings.split] = found
    return lab.prints[readings.split]

"""One training as it is recorded: what was seen of it, judged and written down, until its report is built."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.contract.kept import Kept
from sleuth.core.engine import Engine
from sleuth.core.history import History
from sleuth.core.observation import Frame, Observation, Step
from sleuth.core.recording.jumps import Jumps
from sleuth.core.statistics import pack, unpack
from sleuth.store.writing import Writer


class RecordedTraining:
    """A watch fills it, `aftermath.examine` adds to it, `report.report_of` reads it."""

    def __init__(self, adapter: Adapter, name: str, engine: Engine, writer: Writer | None = None) -> None:
        self.adapter, self.name, self.engine, self.writer = adapter, name, engine, writer
        self.lock = threading.RLock()  # the watch's thread takes observations too
        self.seconds = 0.0
        self.overhead: dict[str, Any] = {}
        self.watch_notes: tuple[str, ...] = ()  # of the watch, as they are now
        self.kept: Kept | None = None  # what the watch kept for an examination after the end
        self._remarks: list[str] = []
        self._jumps = Jumps()

    @property
    def history(self) -> History:
        return self.engine.history

    @property
    def file(self) -> Path | None:
        """Where it is written; None: nowhere."""
        return None if self.writer is None else self.writer.path

    @property
    def notes(self) -> tuple[str, ...]:
        found = list(self.watch_notes)
        if self.writer is not None and self.writer.trouble:
            found.append(f"{self.writer.lost} observations are not in {self.writer.path}: {self.writer.trouble}")
        return (*found, *self._remarks)

    def take(self, *observations: Observation) -> None:
        """What is judged is what is stored: a replay must come to the same verdict."""
        packed: dict[int, np.ndarray] = {}
        rounded = [as_stored(o, packed) for o in observations]
        with self.lock:
            rounded += list(self._jumps.found([o for o in rounded if isinstance(o, Step)]))
            for observation in rounded:
                self.engine.emit(observation)
            if self.writer is not None and rounded:
                self.writer.write(rounded, packed)

    def commit(self) -> None:
        if self.writer is not None:
            self.writer.commit()

    def remark(self, text: str) -> None:
        """For the report's notes."""
        self._remarks.append(text)

    def close(self) -> None:
        """Nothing more comes: how it ended is written beside it. What comes all the same, later, is written as well."""
        with self.lock:
            if self.writer is not None:
                self.writer.write_fact("end", {"seconds": self.seconds, "overhead": self.overhead, "notes": self.notes})
                self.writer.close()


def as_stored(observation: Observation, packed: dict[int, np.ndarray] | None = None) -> Observation:
    """`packed` is given the form in which a frame is written, so that it is made once."""
    if not isinstance(observation, Frame):
        return observation
    form = pack(observation.table)
    seen = observation
    stored = Frame(seen.step, seen.role, seen.paths, unpack(form), seen.exponents, seen.sampled)
    if packed is not None:
        packed[id(stored)] = form
    return stored

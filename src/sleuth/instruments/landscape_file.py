"""The part of a landscape that is done already, kept in a file."""

import hashlib
import os
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput

# Seconds between two writes.
OFTEN = 2.0


def fingerprint(weights: Mapping[str, np.ndarray], data: Sequence[np.ndarray], distances: np.ndarray, *settings: int) -> str:
    """The same only for the same weights, samples, grid and seed."""
    digest = hashlib.sha256(repr((settings, distances.tolist(), [(p, w.shape) for p, w in weights.items()])).encode())
    for array in (*weights.values(), *data):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Progress:
    """Use it as a context: whatever ends the work, what is done is written."""

    def __init__(self, file: str | Path | None, key: str, shape: tuple[int, ...]) -> None:
        self._file = None if file is None else Path(file)
        self._key = key
        self._written = time.monotonic()
        self.losses = np.full(shape, np.nan)
        self.known = np.zeros(shape, dtype=bool)
        if self._file is not None and self._file.exists():
            self._read(self._file)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: Any) -> None:
        self._write()

    def put(self, place: tuple[int, ...], loss: float) -> None:
        self.losses[place], self.known[place] = loss, True
        if time.monotonic() - self._written > OFTEN:
            self._write()

    def _read(self, file: Path) -> None:
        try:
            with np.load(file, allow_pickle=False) as stored:
                key, losses, known = str(stored["key"]), stored["losses"], stored["known"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise UnusableInput(f"{file} is not a landscape that sleuth has written; give another name.") from None
        if key != self._key or losses.shape != self.losses.shape:
            raise UnusableInput(f"{file} belongs to other weights, data, seed or grid; give another name, or delete it.")
        self.losses, self.known = losses, known

    def _write(self) -> None:
        """Whole or not at all: an interruption must not spoil what was there."""
        if self._file is None:
            return
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}.partial")
        with partial.open("wb") as stream:
            np.savez(stream, key=self._key, losses=self.losses, known=self.known)
        os.replace(partial, self._file)
        self._written = time.monotonic()

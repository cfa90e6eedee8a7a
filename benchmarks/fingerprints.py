"""Fingerprints of a million rows of 100 features, matched against 100,000: seconds, and how far memory grew.

Run: ./dev bench fingerprints [rows] [columns]
"""

import resource
import sys
import time

import numpy as np

from sleuth.core.observation import Split
from sleuth.probes.data.overlap import compare
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.lab.probe import Readings

BATCH = 1024
LEAKED = 0.1


def read(rows: int, columns: int, seed: int, split: Split) -> tuple[Readings, float]:
    """Rows as a loader gives them, in batches; a tenth of validation is training in half precision. The seconds are those
    of fingerprinting alone."""
    readings, seconds = Readings(split), 0.0
    for start in range(0, rows, BATCH):
        # The same batch number gives the same rows in both splits.
        leaked = split is Split.VALIDATION and (start // BATCH) % round(1 / LEAKED) == 0
        rng = np.random.default_rng((0 if leaked else seed, start))
        batch = rng.normal(size=(min(BATCH, rows - start), columns)).astype(np.float32)
        if leaked:
            batch = batch.astype(np.float16).astype(np.float32)
        begun = time.perf_counter()
        exact, rounded = fingerprints([batch])
        seconds += time.perf_counter() - begun
        readings.exact.append(exact)
        readings.rounded.append(rounded)
    return readings, seconds


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(rows: int = 1_000_000, columns: int = 100) -> None:
    fingerprints([np.ones((BATCH, columns), np.float32)])
    before = peak_mebibytes()
    train, train_seconds = read(rows, columns, 0, Split.TRAIN)
    validation, validation_seconds = read(rows // 10, columns, 1, Split.VALIDATION)
    begun = time.perf_counter()
    found = compare(train, validation)
    matching = time.perf_counter() - begun
    print(f"{rows:,} + {rows // 10:,} rows of {columns} features")
    print(f"fingerprints   {train_seconds + validation_seconds:6.2f} s")
    print(f"matching       {matching:6.2f} s")
    print(
        f"peak memory   +{peak_mebibytes() - before:6.0f} MiB (the rows as float32 would be {rows * columns * 4 / 2**20:.0f} MiB)"
    )
    batches = range(0, rows // 10, BATCH)
    leaked = sum(min(BATCH, rows // 10 - start) for start in batches if (start // BATCH) % round(1 / LEAKED) == 0)
    print(f"found          {found.rounded.found:,} of {leaked:,} leaked rows, {found.exact.found:,} of them exactly")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

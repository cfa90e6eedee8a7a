"""Lets a loader's worker processes read the same samples, and compares what random changes each of them makes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Crew, Employs
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.reading.batch_facts import Named, numbers
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.core.trial import WorkerNoise
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.lab.probe import Lab, probe

# Two show whether workers share a state; more would say the same.
WORKERS = 2
SAMPLES, ROUNDS, EPOCHS = 20, 4, 2
# Batches of a stream that each worker is asked for.
STREAM_BATCHES = 4
# With fewer different samples in an epoch, their numbers may be multiples by chance.
LEAST_DIFFERENT = 20
# Starting processes may take a second each, where they are spawned and not forked.
LEAST_SECONDS = 5.0


@probe(title="Comparing the loader's workers", stage=Stage.DATA, rank=35, emits=(WorkerNoise,), share=0.2)
def worker_noise(lab: Lab) -> Iterator[Observation]:
    crew = lab.adapter.crew(lab.subject.train) if isinstance(lab.adapter, Employs) else None
    if crew is None:
        raise Unsupported("training data does not come from a loader whose workers are known")
    if crew.count == 0:
        yield WorkerNoise(0, 0)
    else:
        yield _try_stream(lab, crew) if crew.stream else _try_positions(lab, crew)


def _seconds(lab: Lab) -> float:
    left = min(lab.probe_deadline - lab.clock(), lab.seconds_left())
    if left < LEAST_SECONDS:
        raise Unsupported("there is no time left to start worker processes")
    return left


def _try_positions(lab: Lab, crew: Crew) -> WorkerNoise:
    """All get the same samples, turn by turn: in an honest crew what is random differs, and nothing else."""
    workers = min(crew.count, WORKERS)
    positions = np.unique(np.linspace(0, crew.samples - 1, min(SAMPLES, crew.samples)).astype(int)).tolist()
    epochs = crew.read([positions] * (workers * ROUNDS), workers, EPOCHS, _seconds(lab))
    prints = [[_prints(lab, batch) for batch in epoch] for epoch in epochs]
    if any(len(epoch) != workers * ROUNDS for epoch in prints) or len({len(p) for epoch in prints for p in epoch}) != 1:
        raise Unsupported("the workers do not give the samples that they are asked for")
    table = np.array(prints).reshape(EPOCHS, ROUNDS, workers, -1)
    return WorkerNoise(
        workers=crew.count,
        tried=workers,
        comparisons=table[0, :, 0].size,
        alike_within=float(np.mean(table[:, 1:] == table[:, :-1])),
        alike_across=float(np.mean(table[:, :, 0] == table[:, :, -1])) if workers > 1 else 0.0,
        alike_epochs=float(np.mean(table[0] == table[1])),
        persistent=crew.persistent,
    )


def _try_stream(lab: Lab, crew: Crew) -> WorkerNoise:
    if crew.count < 2:
        return WorkerNoise(crew.count, 0)
    batches = crew.read(STREAM_BATCHES * WORKERS, WORKERS, 1, _seconds(lab))[0]
    same, different = 0.0, 0
    for targets in (False, True):
        one, two = (_stream_prints(lab, batches[turn::WORKERS], targets) for turn in range(WORKERS))
        length = min(len(one), len(two))
        alike = float(np.mean(one[:length] == two[:length])) if length else 0.0
        if alike > same:
            same, different = alike, len(np.unique(one[:length]))
    return WorkerNoise(
        workers=crew.count,
        tried=WORKERS,
        comparisons=sum(len(_stream_prints(lab, [b], False)) for b in batches) // WORKERS,
        persistent=crew.persistent,
        stream_alike=same,
        stream_samples=different,
        stream_copies=_copies(lab, crew.count),
    )


def _stream_prints(lab: Lab, batches: Sequence[Any], targets: bool) -> np.ndarray:
    """Of the inputs, which noise of a worker's own may hide; or of targets, where those are numbers of their own and tell
    samples apart as classes do not."""
    parts = [take_apart(batch, lab.subject.split) for batch in batches]
    arrays = [numbers(p.target if targets else p.inputs, lab.adapter) for p in parts]
    if targets and any(n.values.dtype.kind != "f" for some in arrays for n in some):
        return np.zeros(0, dtype=np.uint64)
    prints = [_fingerprint(some) for some in arrays]
    return np.concatenate(prints) if prints else np.zeros(0, dtype=np.uint64)


def _prints(lab: Lab, batch: Any) -> np.ndarray:
    parts = take_apart(batch, lab.subject.split)
    return _fingerprint(numbers((parts.inputs, parts.target), lab.adapter))


def _fingerprint(arrays: list[Named]) -> np.ndarray:
    size = next((len(n.values) for n in arrays if n.values.ndim), 0)
    alike = [n.values for n in arrays if n.values.ndim and len(n.values) == size]
    return fingerprints(alike)[0] if size else np.zeros(0, dtype=np.uint64)


def _copies(lab: Lab, workers: int) -> bool:
    """Does every sample of a whole epoch come as often as there are workers, or a multiple of that?"""
    if not lab.train.complete or not lab.train.exact:
        return False
    _, counts = np.unique(np.concatenate(lab.train.exact), return_counts=True)
    return len(counts) >= LEAST_DIFFERENT and bool((counts % workers == 0).all())

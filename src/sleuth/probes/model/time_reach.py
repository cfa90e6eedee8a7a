"""How much each position of a sequence counts for a model's answer, and where in the sequence the targets can be told from."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.contract.adapter import Bench
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts, take_apart
from sleuth.core.trial import TimeReach
from sleuth.core.trial.model import FAINT
from sleuth.probes.lab.changed_inputs import changed, first_samples, input_arrays, rms
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import data_rows
from sleuth.probes.learners.features import compact, tabulate
from sleuth.probes.learners.plain_learners import answers
from sleuth.probes.learners.targets import encode

# In a shorter sequence nothing fades or grows far.
LEAST_LENGTH = 8
MOST_POSITIONS = 12
SAMPLES = 16
# In spreads of the input: small enough to stay where the model is smooth, and far above the rounding of float64.
CHANGE = 1e-4
# Samples that simple learners are asked with.
MOST_ASKED = 512
FEWEST_ASKED = 100


@probe(
    title="Asking how far back a sequence is heard",
    stage=Stage.MODEL,
    rank=8,
    emits=(TimeReach,),
    needs=("forward",),
    share=0.1,
)
def time_reach(lab: Lab) -> Iterator[Observation]:
    path, length = _sequence(lab, lab.batch)
    start = lab.bench.snapshot()
    try:
        wide = lab.bench.double()
        wide.set_training(False)
        positions = sorted({*np.linspace(0, length - 1, MOST_POSITIONS).astype(int).tolist()})
        batch = first_samples(lab, lab.batch, SAMPLES)
        sizes = _sizes(lab, wide, batch, path, positions)
    finally:
        lab.bench.restore(start)
    beyond = within = None
    reached = np.interp(np.arange(length), positions, sizes) >= FAINT * max(sizes)
    if max(sizes) > 0 and not reached.all() and reached.any():
        beyond, within = (_skill(lab, path, rows) for rows in (~reached, reached))
    yield TimeReach(length, tuple(positions), tuple(sizes), beyond, within)


def _sequence(lab: Lab, batch: Parts) -> tuple[str, int]:
    """The one input that is a row of vectors a sample."""
    given = input_arrays(lab, batch.inputs)
    found = [(path, v) for path, v in given.items() if v.ndim == 3 and v.dtype.kind == "f"]
    if len(found) != 1 or found[0][1].shape[1] < LEAST_LENGTH:
        raise Unsupported("the inputs are not sequences of vectors")
    path, values = found[0]
    made = [a.shape for _, a in leaves(lab.bench.forward(batch.inputs), lab.adapter.is_array)]
    if len(made) != 1 or len(made[0]) > 2 or tuple(made[0][:1]) != values.shape[:1]:
        raise Unsupported("the model does not give one answer for each sequence")
    return path, int(values.shape[1])


def _sizes(lab: Lab, bench: Bench, batch: Parts, path: str, positions: list[int]) -> list[float]:
    values = input_arrays(lab, batch.inputs)[path].astype(np.float64)
    step = CHANGE * (float(values.std()) or 1.0)
    noise = lab.rng.normal(0.0, step, values[:, 0].shape)

    def answer(at: int | None) -> np.ndarray:
        lab.tick()

        def change(name: str, old: np.ndarray) -> np.ndarray:
            if name != path or at is None:
                return old
            new = old.astype(np.float64)
            new[:, at] += noise
            return new

        made = next(a for _, a in leaves(bench.forward(changed(lab, batch.inputs, change)), lab.adapter.is_array))
        return np.array(lab.adapter.values(made), dtype=np.float64)

    plain = answer(None)
    if not np.isfinite(plain).all():
        raise Unsupported("the answers are not finite")
    return [rms(answer(at) - plain) / step for at in positions]


def _skill(lab: Lab, path: str, wanted: np.ndarray) -> float | None:
    """Of simple learners that see these positions alone."""
    try:
        inputs, targets = _asked(lab, path)
        blocks = compact(inputs[:, wanted])
        encoded = encode(targets, blocks)
        table = tabulate(blocks, lab.rng)
    except Unsupported:
        return None
    lab.tick()
    spread = float(np.square(encoded.columns - encoded.columns.mean(axis=0)).mean())
    errors = [float(np.square(a.held_out - encoded.columns).mean()) for a in answers(table, encoded.columns, table[:1], lab.rng)]
    return 1 - min(errors) / spread if spread > 0 else None


def _asked(lab: Lab, path: str) -> tuple[np.ndarray, list[np.ndarray]]:
    rows = data_rows(lab.subject.train, lab.adapter)
    if rows is not None and rows.bulk:
        taken = np.arange(rows.count)[:: max(1, rows.count // MOST_ASKED)][:MOST_ASKED]
        batches = [take_apart(rows.take(taken), lab.subject.split)]
    else:
        batches = lab.train.batches[: max(1, MOST_ASKED // max(1, len(input_arrays(lab, lab.batch.inputs)[path])))]
    inputs = [input_arrays(lab, b.inputs)[path] for b in batches]
    targets = [[lab.adapter.values(a) for _, a in leaves(b.target, lab.adapter.is_array)] for b in batches]
    if not all(targets) or len({len(t) for t in targets}) > 1 or sum(map(len, inputs)) < FEWEST_ASKED:
        raise Unsupported("too few samples with targets were read")
    return np.concatenate(inputs), [np.concatenate(same) for same in zip(*targets, strict=True)]

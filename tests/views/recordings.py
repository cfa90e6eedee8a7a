"""Made-up recordings for charts: what they show is known in advance."""

import numpy as np

from sleuth.core.history import History
from sleuth.core.observation import Evaluation, Frame, Memory, Role, Split, Step, Units
from sleuth.core.recording.remembered import Remembered
from sleuth.core.statistics import COLUMNS, EXPONENT_BINS

STEPS, SPIKE, BROKEN = 1200, 777, 1100
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>%{x}&lt;b&gt;"
PATHS = (HOSTILE, "body.1.weight", "body.2.weight", "head.weight")


def recording(paths: tuple[str, ...] = PATHS) -> Remembered:
    history = History()
    for step in range(STEPS):
        loss = None if step >= BROKEN else 9.0 if step == SPIKE else 2.0 - step / STEPS
        history.add(Step(step, loss, lr=0.1, gradient_norm=1.0, seconds={"step": 0.01}))
    for step in range(0, STEPS, 10):
        for role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE, Role.ACTIVATION):
            bins = np.zeros((len(paths), EXPONENT_BINS), dtype=np.int32)
            bins[:, 15] = 5
            history.add(Frame(step, role, paths, _table(len(paths), step), bins if role is Role.GRADIENT else None))
        history.add(Units(step, paths[0], "activation", "relu", 8, np.array([0, 0, 3, 4]), np.zeros(4), np.ones(4)))
        history.add(Memory(step, 1_000_000 + step))
    for step in range(99, STEPS, 100):
        history.add(Evaluation(step, Split.VALIDATION, {"loss": 2.0, HOSTILE: 0.5}, logged=True))
    return Remembered(history)


def _table(tensors: int, step: int) -> np.ndarray:
    rows = np.zeros((tensors, len(COLUMNS)))
    rows[:, COLUMNS.index("count")] = 100
    rows[:, COLUMNS.index("m2")] = 100 * np.logspace(-6, -2, tensors)
    if step >= BROKEN:
        rows[0, COLUMNS.index("nans")] = 100
    return rows

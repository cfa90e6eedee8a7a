"""Which classes the model named at a step that was looked at."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.core.observation import LossCall, Predictions, Split
from sleuth.core.runtime.tree import leaves

ONE_CLASS = ("cross-entropy", "probabilities", "nll")


def predictions(hearing: Hearing, calls: Sequence[LossCall], step: int) -> Iterator[Predictions]:
    """Where one loss takes one class a sample: its number, or a row with a one."""
    heard = [one for one in hearing.losses if not isinstance(one.loss, str)]
    if len(heard) != 1 or len(calls) != 1 or calls[0].family not in ONE_CLASS:
        return
    outputs, truths = (
        [backend.values(a) for _, a in leaves(part, backend.is_array)] for part in (heard[0].output, heard[0].truth)
    )
    if len(outputs) != 1 or len(truths) != 1 or outputs[0].ndim != 2:
        return
    output, truth = outputs[0], truths[0]
    if truth.shape == output.shape and output.shape[-1] > 1:
        right = truth.argmax(-1)
    elif truth.size == len(output):
        right = truth.reshape(-1).astype(np.int64)
    else:
        return
    named = output.argmax(-1)
    correct = int((named == right).sum())
    yield Predictions(step, Split.TRAIN, output.shape[-1], _counted(named), _counted(right), correct, calls[0].location)


def _counted(classes: np.ndarray) -> dict[int, int]:
    return dict(Counter(classes.tolist()))

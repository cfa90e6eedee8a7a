"""What Keras says at the end of an epoch."""

from collections.abc import Iterator
from typing import Any

from sleuth.adapters.keras import backend
from sleuth.core.observation import Evaluation, Split


def evaluations(logs: Any, step: int, *, weighted: bool) -> Iterator[Evaluation]:
    """`weighted`: the training's loss counts samples differently, so that the one of the validation is not to be compared."""
    named = {str(k): value for k, v in (logs or {}).items() if (value := _plain(v)) is not None}
    for split, prefix in ((Split.VALIDATION, "val_"), (Split.TRAIN, "")):
        mine = {k.removeprefix("val_"): v for k, v in named.items() if k.startswith("val_") == bool(prefix)}
        # What Keras calls the loss of an epoch is the mean over all its steps: the steps themselves are known.
        if split is Split.TRAIN or weighted:
            mine.pop("loss", None)
        mine.pop("learning_rate", None)
        if mine:
            yield Evaluation(step, split, mine, logged=True)


def _plain(value: Any) -> float | None:
    try:
        return float(backend.values(value)) if backend.is_array(value) else float(value)
    except (TypeError, ValueError):
        return None

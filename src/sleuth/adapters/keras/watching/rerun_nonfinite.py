"""The first loss that is not finite: its step is run again on a copy, operation by operation, before anything is written."""

import math
from collections.abc import Callable
from typing import Any

import keras

from sleuth.adapters.keras.bench import held_by, open_bench
from sleuth.core.observation import Failure, Observation, Origin
from sleuth.core.subject import Parts, Subject

LOST = "where the loss became NaN or Inf could not be found out"
# Larger models are not copied in the middle of a training.
MOST_BYTES = 32 << 20


class NonFiniteRerun:
    """`data` is the batch that a step of `fit` is taken on, while it is; a loop of one's own shows none."""

    def __init__(self, model: Any, say: Callable[[Observation], None], lost: Callable[[str, str], None]) -> None:
        """`lost`: is told what could not be found out, and why."""
        self._model, self._say, self._lost = model, say, lost
        self.data: Any = None
        self._is_over = False

    def is_due(self, loss: Any) -> bool:
        """Is it to be told how this loss came about? Elsewhere than on the host the answer would have to be waited for."""
        if self._is_over or self.data is None or loss.device.type != "cpu" or loss.numel() != 1:
            return False
        self._is_over = not math.isfinite(loss.item())
        return self._is_over and sum(v.value.nbytes for v in self._model.variables) <= MOST_BYTES

    def run(self, step: int) -> None:
        # The adapter itself opens watches.
        from sleuth.adapters.keras.adapter import KerasAdapter

        x, y, _ = keras.utils.unpack_x_y_sample_weight(self.data)
        subject, parts = Subject(self._model, None, optimizer=getattr(self._model, "optimizer", None)), Parts(x, y, self.data)
        try:
            with KerasAdapter().preserve(subject), open_bench(subject, copies_only=True) as bench:
                held_by(bench).set_training(True)
                for found in bench.observe(parts, step):
                    if isinstance(found, Origin):
                        self._say(found)
                    elif isinstance(found, Failure):
                        self._lost(LOST, f"{found.error}: {found.message}")
        except (
            Exception
        ) as error:  # a model may hold what cannot be copied; a step of the user's own, do what cannot be done here
            self._lost(LOST, f"{type(error).__name__}: {error}")

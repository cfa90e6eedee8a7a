"""Lines of the user's that drive a training from outside its steps: what feeds it, sets its rate, says what is trained."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, GeneratorType
from typing import Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.source_lines import answer_line, argument_line, given_line, method_line
from sleuth.adapters.keras.user_lines import Spot, line_now, located, made_at, spot_now
from sleuth.core.location import Location, locate
from sleuth.core.observation import Call, Observation
from sleuth.core.runtime.place import is_users

# Between the one who sets a rate and the callback that stands behind it.
MOST_FRAMES = 8


class Lines:
    def __init__(self, model: Any, waiting: "deque[Observation]", step: Callable[[], int]) -> None:
        self._model, self._waiting, self._step = model, waiting, step
        self._told: set[tuple[str, Location]] = set()
        self._reader = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        with replaced(BaseOptimizer, "learning_rate", self._rating):
            yield

    def begun_by(self, optimiser: Any) -> None:
        """A schedule that is part of the optimiser."""
        rate = getattr(optimiser, "_learning_rate", None)
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) or (callable(rate) and not backend.is_array(rate)):
            self._tell("made-scheduler", made_at(rate) or answer_line(rate))

    def fed_by(self, reader: Any) -> None:
        """Once for all batches of one `fit`."""
        if id(reader) == self._reader:
            return
        self._reader = id(reader)
        place = source_line(reader)
        self._tell("batch", place)
        spot = spot_now() if isinstance(reader, ArrayDataAdapter) else None
        self._tell("made-loader", place or located(spot))
        self._tell("batch-size", place if spot is None else argument_line(spot, "batch_size"))

    def left_out(self, spot: Spot | None) -> None:
        """Some weights were never handed to the optimiser at this call."""
        self._tell("chosen-parameters", None if spot is None else given_line(spot, 1, "trainable_variables"))

    def wired_in(self, spot: Spot) -> None:
        """A layer acts there as in training, in whatever mode the model is called."""
        self._tell("wired-in", located(spot))

    def _rating(self, plain: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def set_rate(optimiser: Any, rate: Any) -> None:
            plain(optimiser, rate)
            if optimiser is getattr(self._model, "optimizer", None):
                try:
                    self._rated(sys._getframe(1))
                except Exception:  # in the middle of the user's training
                    return

        return set_rate

    def _rated(self, frame: FrameType) -> None:
        line = line_now()
        if line is not None:
            self._tell("sets-rate", line)
            return
        callback = _callback(frame)
        made = None if callback is None else made_at(callback)
        line = answer_line(callback.schedule) if isinstance(callback, keras.callbacks.LearningRateScheduler) else None
        self._tell("sets-rate" if line is not None else "made-scheduler", line or made)

    def _tell(self, kind: str, line: Location | None) -> None:
        if line is not None and (kind, line) not in self._told:
            self._told.add((kind, line))
            self._waiting.append(Call(kind, self._step(), line, -1))


def source_line(reader: Any) -> Location | None:
    """Where the user's own code makes the batches; None: Keras makes them of arrays, or somebody else's code does."""
    data = getattr(reader, "py_dataset", None)
    if data is not None:
        return method_line(data, "__getitem__")
    for cell in getattr(getattr(reader, "generator", None), "__closure__", None) or ():
        running = cell.cell_contents.gi_frame if isinstance(cell.cell_contents, GeneratorType) else None
        if running is not None and is_users(running.f_code.co_filename):
            return locate(running.f_code.co_filename, running.f_lineno)
    loader = getattr(reader, "_dataloader", None)
    if loader is not None and backend.name() == "torch":
        from sleuth.adapters.torch.watching.created_at import made_at as loader_made_at

        return loader_made_at(loader)
    return None


def _callback(frame: FrameType | None) -> Any:
    for _ in range(MOST_FRAMES):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if isinstance(owner, keras.callbacks.Callback):
            return owner
        frame = frame.f_back
    return None

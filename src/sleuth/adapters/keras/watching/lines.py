"""Lines of the user's that drive a training from outside its steps: what feeds it, sets its rate, says what is trained."""

from collections.abc import Callable
from types import FrameType, GeneratorType
from typing import Any

import keras
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.source_lines import answer_line, argument_line, given_line, method_line
from sleuth.adapters.keras.user_lines import line_now, located, made_at, spot_now
from sleuth.adapters.keras.watching.loop_calls import Say
from sleuth.adapters.listening.recorder import Recorder
from sleuth.core.location import Location, Spot, locate
from sleuth.core.observation import Call
from sleuth.core.observation.calls import CallKind
from sleuth.core.runtime.place import is_users

# Between the one who sets a rate and the callback that stands behind it.
MOST_FRAMES = 8


class Lines(Recorder):
    def __init__(self, model: Any, say: Say, step: Callable[[], int]) -> None:
        self._model, self._say, self._step = model, say, step
        self._told: set[tuple[CallKind, Location]] = set()
        self._reader = 0

    def begun_by(self, optimiser: Any) -> None:
        """A schedule that is part of the optimiser."""
        rate = getattr(optimiser, "_learning_rate", None)
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) or (callable(rate) and not backend.is_array(rate)):
            self._tell(CallKind.MADE_SCHEDULER, made_at(rate) or answer_line(rate))

    def batch(self, source: Any, batch: Any) -> None:
        """Told once for all batches of one `fit`."""
        if id(source) == self._reader:
            return
        self._reader = id(source)
        place = source_line(source)
        self._tell(CallKind.BATCH, place)
        spot = spot_now() if isinstance(source, ArrayDataAdapter) else None
        self._tell(CallKind.MADE_LOADER, place or located(spot))
        self._tell(CallKind.BATCH_SIZE, place if spot is None else argument_line(spot, "batch_size"))

    def left_out(self, spot: Spot | None) -> None:
        """Some weights were never handed to the optimiser at this call."""
        self._tell(CallKind.CHOSEN_PARAMETERS, None if spot is None else given_line(spot, 1, "trainable_variables"))

    def wired_in(self, spot: Spot) -> None:
        """A layer acts there as in training, in whatever mode the model is called."""
        self._tell(CallKind.WIRED_IN, located(spot))

    def rate_set(self, optimiser: Any, frame: FrameType) -> None:
        """From this frame."""
        if optimiser is not getattr(self._model, "optimizer", None):
            return
        line = line_now()
        if line is not None:
            self._tell(CallKind.SETS_RATE, line)
            return
        callback = _callback(frame)
        made = None if callback is None else made_at(callback)
        line = answer_line(callback.schedule) if isinstance(callback, keras.callbacks.LearningRateScheduler) else None
        self._tell(CallKind.SETS_RATE if line is not None else CallKind.MADE_SCHEDULER, line or made)

    def _tell(self, kind: CallKind, line: Location | None) -> None:
        if line is not None and (kind, line) not in self._told:
            self._told.add((kind, line))
            self._say(Call(kind, self._step(), line, -1))


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

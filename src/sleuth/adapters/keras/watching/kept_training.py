"""Keeps what an examination after the end needs: the variables of the first step, and some of the batches that passed by."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from sleuth.adapters.common.reservoir import Reservoir
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import held_by, open_bench
from sleuth.adapters.keras.copying import copied
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.sides import assign
from sleuth.adapters.keras.state import Randomness
from sleuth.adapters.keras.watching.data_feeding import DataFeed, rows_of
from sleuth.adapters.keras.watching.evaluating import around_test_function
from sleuth.adapters.keras.watching.seen_batches import copied_parts, size_of
from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.listening.recorder import Recorder
from sleuth.core.contract.kept import Group, Kept, Passed
from sleuth.core.subject import Subject

MOST_BYTES = 32 << 20
# Larger models are not kept, nor are they called once more when all is over.
MOST_BYTES_OF_WEIGHTS = 32 << 20
# Sources of validation that are told apart.
MOST_GROUPS = 4
BYTES_A_GROUP = MOST_BYTES // MOST_GROUPS
# Sums in another order, compiled in another way.
ROUNDING = 1e-4
NOT_KEPT = "some batches could not be kept for the experiments at the end"
TOO_LARGE = "the model is too large to be called once more at the end"


class KeptTraining(Recorder):
    """`feed` says where the batch came from that is trained on, or asked about, now."""

    def __init__(self, model: Any, feed: DataFeed, step: Callable[[], int], lost: Callable[[str, str], None]) -> None:
        """`lost`: is told what could not be kept, and why."""
        self._model, self._feed, self._step, self._lost = model, feed, step, lost
        self._start: list[np.ndarray] | None = None
        self._learning: list[bool] = []  # of the model and each of its layers: could it be trained then?
        self._optimiser: Any = None
        self._is_small = True
        self._train: Reservoir[Passed] = Reservoir(MOST_BYTES)
        self._asked: dict[Any, _Asked] = {}
        self._available: int | None = None
        self._first_is_whole = False
        self.first_losses: Sequence[Any] = ()
        self.scale = 1.0
        self._random: Randomness | None = None  # before the first step: a dropout without a seed draws from torch's own generator

    def begin(self, optimiser: Any) -> None:
        """All variables are there, and nothing was written yet."""
        if self._start is not None or self._step():
            return
        variables = _variables(self._model, optimiser)
        self._is_small = sum(int(np.prod(v.shape)) * 4 for v in variables) <= MOST_BYTES_OF_WEIGHTS
        if self._is_small:
            self._start, self._optimiser = [np.array(backend.values(v)) for v in variables], optimiser
            self._learning = [bool(part.trainable) for part in _parts(self._model)]

    def batch(self, source: Any, batch: Any) -> None:
        place = self._train.wants()
        parts = None if place is None else copied_parts(batch, first=place == 0)
        if place is None or parts is None:
            return
        rows = rows_of(parts.inputs)
        self._train.put(place, Passed(self._step(), parts, self._feed.epoch, self._feed.positions(rows)), size_of(parts))
        if place == 0:
            self._random = Randomness()
            self._first_is_whole = rows == rows_of(batch)
        if found := self._feed.available(batch):
            self._available = max(self._available or 0, found)

    def evaluated(self, data: Any) -> None:
        key = self._feed.source
        if key not in self._asked and len(self._asked) >= MOST_GROUPS:
            return
        mine = self._asked.setdefault(key, _Asked(self._feed.is_validation_of(self._model)))
        mine.count(self._step(), rows_of(data))
        place = mine.reservoir.wants()
        parts = None if place is None else copied_parts(data, first=place == 0)
        if place is not None and parts is not None:
            mine.reservoir.put(place, Passed(self._step(), parts), size_of(parts))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """To what the model is asked by `evaluate`, which `fit` calls for its validation."""
        with around_test_function(self._model, self._asking, self._failed):
            yield

    def _asking(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def test(*args: Any) -> Any:
            # On torch a batch in a list, on jax a state and an iterator.
            if len(args) == 1:
                attempt(self._failed, self.evaluated, args[0][0])
                return plain(*args)
            return plain(args[0], attempt(self._failed, _told, args[1], self) or args[1])

        return test

    def _failed(self, error: Exception) -> None:
        self._train.close()
        self._lost(NOT_KEPT, f"{type(error).__name__}: {error}")

    def kept(self) -> Kept | None:
        train = self._train.items
        if not train:
            return None
        groups = [Group(a.reservoir.items, a.samples, declared=a.declared) for a in self._asked.values() if a.reservoir.items]
        forbidden = "" if self._is_small else TOO_LARGE
        subject = None if forbidden else self._as_at_first()
        reason = self._obstacle(subject, train[0])
        return Kept(
            Subject(self._model, None) if subject is None else subject,
            train,
            groups,
            available=self._available,
            fed_anew=True,
            at_start=not reason,
            forbidden=forbidden,
            remarks=(reason,) if reason else (),
            compiles=backend.name() == "jax",
        )

    def _as_at_first(self) -> Subject | None:
        try:
            fresh, _, optimiser = copied(self._model, None, self._optimiser)
            variables = _variables(fresh, optimiser)
            if self._start is None or [tuple(v.shape) for v in variables] != [a.shape for a in self._start]:
                return None
            assign(variables, self._start)
            self._thaw(fresh)
        except Exception:  # a model may hold what cannot be copied
            return None
        return Subject(fresh, None, optimizer=optimiser)

    def _thaw(self, fresh: Any) -> None:
        """What a script freezes afterwards was learning then. A holder comes before what it holds, for which it decides too."""
        for part, was in zip(_parts(fresh), self._learning, strict=True):
            if part.trainable != was:
                part.trainable = was

    def _obstacle(self, subject: Subject | None, first: Passed) -> str:
        """Why experiments with what was put together would tell of another training than the script's."""
        if subject is None:
            return "the model and its optimiser could not be brought back to the first step"
        if len(self.first_losses) != 1 or not self._first_is_whole:
            return "the loss of the first batch is not known, or that batch is too large to be kept"
        before = float(np.asarray(backend.values(self.first_losses[0])).reshape(())) / self.scale
        try:
            with open_bench(subject) as bench:
                held_by(bench).set_training(True)
                if self._random is not None:
                    self._random.put_back()
                again = bench.loss(first.parts)
        except Exception as error:
            return f"the loss of the first batch could not be computed again: {type(error).__name__}: {error}"
        if again == before or (again != again and before != before) or abs(again - before) <= ROUNDING * abs(before):
            return ""
        return f"computed again, the loss of the first batch is {again:.6g}, and it was {before:.6g}: something else goes into it"


class _Asked:
    """Batches of one source."""

    def __init__(self, declared: bool) -> None:
        self.declared = declared
        self.reservoir: Reservoir[Passed] = Reservoir(BYTES_A_GROUP)
        self.samples = 0
        self._counted, self._at = 0, -1

    def count(self, step: int, samples: int) -> None:
        """Samples between two steps of the training are those of one pass."""
        self._counted = self._counted + samples if step == self._at else samples
        self._at = step
        self.samples = max(self.samples, self._counted)


def _told(iterator: Any, kept: KeptTraining) -> Iterator[Any]:
    for data in iterator:
        attempt(kept._failed, kept.evaluated, data)
        yield data


def _parts(model: Any) -> list[Any]:
    return [model, *(layer for _, layer in layers(model))]


def _variables(model: Any, optimiser: Any) -> list[Any]:
    return [*model.variables, *(optimiser.variables if isinstance(optimiser, keras.optimizers.Optimizer) else ())]

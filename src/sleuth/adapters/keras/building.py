"""Models whose variables come into being with their first batch."""

from dataclasses import replace
from typing import Any

from sleuth.adapters.keras import backend, data_sources
from sleuth.adapters.keras.copying import copied
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Subject, take_apart


def is_built(model: Any) -> bool:
    return bool(model.built) or bool(model.weights)


def build(model: Any, subject: Subject) -> None:
    """Run a copy of the user's once on a batch of the data, as `fit` would, so that it has its variables."""
    if is_built(model):
        return
    batch = data_sources.first_batch(subject.train)
    if batch is None:
        raise UnusableInput(
            "the model has no variables yet: they come into being with its first batch. Call it once, model(x[:1]), or give "
            "it keras.Input(shape=…) as its first layer, before you hand it over."
        )
    inputs = take_apart(batch, subject.split).inputs
    try:
        model(map_arrays(inputs, _first_two, backend.is_array))
    except Exception:  # forward-fails tells it, with all that is known
        return


def as_built(subject: Subject) -> Subject:
    """With a copy of the model that has its variables, where the user's has none yet and there are data to build it with."""
    if is_built(subject.model) or subject.train is None:
        return subject
    model, _, optimiser = copied(subject.model, None, subject.optimizer)
    build(model, subject)
    return replace(subject, model=model, optimizer=optimiser)


def _first_two(array: Any) -> Any:
    return backend.native(array[:2])

"""A copy of the model to look at, and calling it as its user would."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.copying import copied
from sleuth.adapters.keras.sides import side_of, without_warnings
from sleuth.adapters.keras.state import Snapshot, preserved
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Subject, call_model


@contextmanager
def guest(model: Any) -> Iterator[Any]:
    """A model that cannot be copied is looked at itself, and put back."""
    backend.require_known()
    with preserved(Subject(model, None)), without_warnings():
        try:
            visited, _, _ = copied(model, None, None)
        except Exception:
            before = Snapshot(list(model.variables), None)
            try:
                yield model
            finally:
                before.put_back()
        else:
            yield visited


def call(model: Any, inputs: Any, *, training: bool = False) -> Any:
    """Without gradients, in inference unless asked otherwise."""
    given = native(inputs)
    mode = {"training": training} if model._call_has_training_arg else {}

    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs, **mode)

    with side_of(model).unrecorded():
        return call_model(run, model.call, given)


def native(inputs: Any) -> Any:
    return map_arrays(inputs, backend.native, backend.is_array)

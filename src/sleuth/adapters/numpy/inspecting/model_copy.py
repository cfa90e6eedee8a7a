"""A model that is only looked at: a copy of it, or itself between remembering and putting back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.common.manual_loop.calling import WORDS, takes
from sleuth.adapters.numpy.bench import copied
from sleuth.adapters.numpy.forms import understood
from sleuth.adapters.numpy.model_parts import layers
from sleuth.adapters.numpy.state import put_back, remember
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject, call_model


@contextmanager
def guest(model: Any, *, as_is: bool = False) -> Iterator[Any]:
    """Not in training mode unless it is to stay as it is."""
    with random_preserved((model,)):
        (visited, *_), _ = copied(understood(Subject(model, None)))
        before = remember(visited)
        try:
            if not as_is:
                for thing in (visited, getattr(visited, "root", None), *(layer for _, layer in layers(visited))):
                    if isinstance(getattr(thing, "training", None), bool):
                        thing.training = False
            yield visited
        finally:
            put_back(before)


def ask(model: Any, inputs: Any, *, training: bool = False) -> Any:
    forward = model.forward
    mode = [word for word in WORDS["training"] if takes(forward, "training") and word in forward.__code__.co_varnames]
    if mode and not isinstance(inputs, dict | tuple):
        return forward(inputs, **{mode[0]: training})
    return call_model(forward, forward, inputs)

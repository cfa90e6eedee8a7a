"""Putting a function of ours in the place of one of Keras', for a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """`make` is given the plain function. What was inherited is inherited again afterwards."""
    own = name in vars(owner)
    plain = getattr(owner, name)
    ours = wraps(plain)(make(plain))
    setattr(owner, name, ours)
    try:
        yield
    finally:
        # Whoever came after us keeps what they put there: theirs calls ours, which calls the plain one.
        if vars(owner).get(name) is ours:
            setattr(owner, name, plain) if own else delattr(owner, name)

"""Random states around an examination. Keys are values: only generators of Python and NumPy can go on by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    held = (subject.train, subject.validation, subject.model, subject.loss, subject.optimizer)
    with random_preserved(held, closed=(jax.Array,)):
        yield

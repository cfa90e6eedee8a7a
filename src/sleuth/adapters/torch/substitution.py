"""Other answers in the place of the model's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def answers_changed(model: nn.Module, change: Callable[[Any], Any]) -> Iterator[None]:
    """Each call of the model returns `change(output)`."""
    hook = model.register_forward_hook(lambda module, given, output: change(output))
    try:
        yield
    finally:
        hook.remove()

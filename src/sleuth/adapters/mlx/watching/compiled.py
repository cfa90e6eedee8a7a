"""Compiled functions: what happens in them is not seen, what they are given and return is. Stands in the place of mx.compile."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.trees.reading import Reading
from sleuth.adapters.mlx.watching.listeners import COMPILING, LISTENERS
from sleuth.adapters.mlx.watching.tape import Tape

PLAIN_COMPILE = mx.compile


class Compiled:
    """Stands for what mx.compile returned."""

    def __init__(self, plain: Callable[..., Any], reading: Reading) -> None:
        self.plain = plain
        self.reading = reading
        self.model: nn.Module | None = None
        self.optimiser: Optimizer | None = None
        self.tape: Tape | None = None
        self.training = True  # the mode that its model was in when MLX last read it: what is compiled stays so

    @property
    def trains(self) -> bool:
        return (self.model is not None and self.optimiser is not None) or (self.model is None and bool(self.reading.weights))

    def met(self, optimiser: Optimizer, target: Any) -> None:
        self.optimiser = self.optimiser or optimiser
        self.model = target if isinstance(target, nn.Module) else self.model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not LISTENERS or COMPILING:
            return self.plain(*args, **kwargs)
        for listener in list(LISTENERS) if self.trains else ():
            listener.hear_compiled_begin(self, args, kwargs)
        heard = list(LISTENERS)
        COMPILING.append(self)
        try:
            result = self.plain(*args, **kwargs)
        finally:
            COMPILING.pop()
        for listener in heard if self.trains else ():
            listener.hear_compiled(self, args, kwargs, result)
        for listener in heard if self.reading.asked and not self.trains else ():
            listener.hear_compiled_question(self, args, kwargs)
        for listener in heard if self.trains else ():
            listener.step_taken()
        return result


def compile_(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    reading = Reading()
    return Compiled(PLAIN_COMPILE(reading.around(fun), *args, **kwargs), reading)

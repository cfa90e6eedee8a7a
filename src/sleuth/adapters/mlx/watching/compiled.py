"""Compiled functions: what happens in them is not seen, what they are given and return is. Stands in the place of mx.compile."""

from collections.abc import Callable
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.patches import attempt, tell
from sleuth.adapters.mlx.trees.roles import Reading
from sleuth.adapters.mlx.watching.listeners import COMPILING, LISTENERS, lose_reading
from sleuth.adapters.mlx.watching.tape import Tape


def patched_compile(plain: Callable[..., Any]) -> Callable[..., Any]:
    def compile_(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        compiled = attempt(lose_reading, _compiled, fun)
        if compiled is None:
            return plain(fun, *args, **kwargs)
        compiled.plain = plain(compiled.plain, *args, **kwargs)
        return compiled

    return compile_


def _compiled(fun: Callable[..., Any]) -> "Compiled":
    """Of what MLX is to compile."""
    reading = Reading()
    return Compiled(reading.around(fun), reading)


class Compiled:
    """Stands for what mx.compile returned."""

    def __init__(self, plain: Callable[..., Any], reading: Reading) -> None:
        self.plain = plain
        self.reading = reading
        self.model: nn.Module | None = None
        self.optimiser: Optimizer | None = None
        self.tape: Tape | None = None
        self.training = True  # the mode that its model was in when MLX last read it: what is compiled stays so

    def trains(self) -> bool:
        return (self.model is not None and self.optimiser is not None) or (self.model is None and bool(self.reading.weights))

    def met(self, optimiser: Optimizer, target: Any) -> None:
        self.optimiser = self.optimiser or optimiser
        self.model = target if isinstance(target, nn.Module) else self.model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not LISTENERS or COMPILING:
            return self.plain(*args, **kwargs)
        if attempt(lose_reading, self.trains):
            tell(LISTENERS, "hear_compiled_begin", self, args, kwargs)
        COMPILING.append(self)
        try:
            result = self.plain(*args, **kwargs)
        finally:
            COMPILING.pop()
        if not attempt(lose_reading, self.trains):
            if self.reading.asked:
                tell(LISTENERS, "hear_compiled_question", self, args, kwargs)
            return result
        tell(LISTENERS, "hear_compiled", self, args, kwargs, result)
        for listener in list(LISTENERS):
            listener.leave_when_enough()
        return result

"""The loss function of a tree, called for its value: a validation. It is heard at its last operation, which the tape tells.

A function of the user's own cannot be listened to. But what it does last is done by MLX, in a frame of that function's code.
"""

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import mlx.core as mx

from sleuth.adapters.listening.patches import Patch, attempt
from sleuth.adapters.mlx.arrays import is_array
from sleuth.adapters.mlx.trees.roles import Roles
from sleuth.adapters.mlx.watching.asked_inputs import Asking
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.differentiated import is_taking
from sleuth.adapters.mlx.watching.listeners import COMPILING, lost
from sleuth.adapters.mlx.watching.tape import Recorded
from sleuth.core.contract.kept import Group, Passed
from sleuth.core.observation import Evaluation

_lose_value = lost("a loss that the script asked for could not be heard")


class Valuing:
    def __init__(self, last: Recorded, code: CodeType, roles: Roles, steps: Callable[[], int]) -> None:
        """`last`: the operation that makes the loss."""
        self._code, self._roles, self._steps = code, roles, steps
        self._asking = Asking()
        self._line = None if last.location is None else last.location.line
        self._patch = Patch(last.owner, last.name, self._patched)

    def settle(self) -> None:
        """Before the next gradient."""
        if self._asking.validating.waits:
            self._asking.validating.settle(None, None)

    def looked(self) -> None:
        self._asking.settle()

    def close(self) -> None:
        self._patch.remove()
        self.settle()
        self._asking.settle()

    def groups(self) -> list[Group]:
        return self._asking.groups()

    def evaluations(self, train: list[Passed]) -> Iterator[Evaluation]:
        return self._asking.validating.evaluations(train)

    def _patched(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            output = plain(*args, **kwargs)
            frame = sys._getframe(1)
            if frame.f_code is self._code and frame.f_lineno == self._line and not COMPILING:
                attempt(_lose_value, self._hear, frame, output)
            return output

        return call

    def _hear(self, frame: FrameType, output: Any) -> None:
        if is_taking():
            return
        names = self._code.co_varnames[: self._code.co_argcount]
        known = dict(arrays_by_path((tuple(frame.f_locals.get(name) for name in names), {})))
        inputs = tuple(known[path] for path in self._roles.inputs if path in known)
        target = known.get(self._roles.target or "none")
        if len(inputs) == len(self._roles.inputs) and is_array(output) and output.size == 1 and target is not None:
            self._asking.valued(inputs, target, self._steps(), output if output.ndim == 0 else mx.squeeze(output))

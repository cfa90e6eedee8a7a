"""Who is told of the calls of MLX that every training makes, and what they are told."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mlx.optimizers import Optimizer

from sleuth.adapters.listening.listener import Listener
from sleuth.adapters.listening.patches import tell

if TYPE_CHECKING:
    from sleuth.adapters.mlx.watching.compiled import Compiled
    from sleuth.adapters.mlx.watching.differentiated import Differentiated


class Events:
    """Overrides what it wants to be told of."""

    def hear_gradient_begin(self, taken: "Differentiated", args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def hear_gradient(self, taken: "Differentiated", value: Any, gradients: Any) -> None: ...

    def hear_gradient_failed(self) -> None: ...

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None: ...

    def hear_step(self, optimiser: Optimizer, target: Any, after: Any) -> None: ...

    def hear_compiled_begin(self, step: "Compiled", args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def hear_compiled(self, step: "Compiled", args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None: ...

    def hear_compiled_question(self, asked: "Compiled", args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def hear_made(self, optimiser: Optimizer) -> None: ...

    def hear_clip(self, gradients: Any) -> None: ...

    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None: ...

    def hear_lost(self, what: str, error: Exception) -> None:
        """Something of ours failed inside a call of the user's; `what` says what is not known for that."""

    def speak_up(self) -> None:
        """Before weights are written; may raise, where the user asked for it."""

    def leave_when_enough(self) -> None:
        """After a step; may raise, where the user asked for it."""


class MlxListener(Events, Listener):
    """Hears one training."""

    def remark(self, said: str) -> None:
        """Once."""
        if said not in self.remarks:
            self.remarks.append(said)

    def hear_lost(self, what: str, error: Exception) -> None:
        """Said once: what fails at one step fails at many."""
        if not any(remark.startswith(f"{what}: ") for remark in self.remarks):
            self.remarks.append(f"{what}: {type(error).__name__}: {error}")


# Listeners, and discoveries that open them. Whoever opens a listener while it is told something comes before it in the list, so
# that the new one is told the same.
LISTENERS: list[Any] = []
# The functions that MLX is reading, to compile them: nothing has values in there.
COMPILING: "list[Compiled]" = []


def lost(what: str) -> Callable[[Exception], None]:
    """For `attempt`, where nobody knows whose training it is: all who listen are told."""
    return partial(_tell_lost, what)


def _tell_lost(what: str, error: Exception) -> None:
    tell(LISTENERS, "hear_lost", what, error)


lose_reading = lost("what a compiled function does could not be read")

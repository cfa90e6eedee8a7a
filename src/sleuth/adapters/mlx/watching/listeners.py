"""Who is told of the calls of MLX that every training makes, and what they are told."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlx.optimizers import Optimizer

from sleuth.adapters.listening.listener import Listener

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

    def speak_up(self) -> None:
        """Before weights are written; may raise, where the user asked for it."""

    def leave_when_enough(self) -> None:
        """After a step; may raise, where the user asked for it."""


class MlxListener(Events, Listener):
    """Hears one training."""


# Listeners, and discoveries that open them. Whoever opens a listener while it is told something comes before it in the list, so
# that the new one is told the same.
LISTENERS: list[Any] = []
# The functions that MLX is reading, to compile them: nothing has values in there.
COMPILING: "list[Compiled]" = []


def attempt(note: Callable[..., Any], *args: Any) -> Any:
    """Notes something that can be left out: an error of ours must not reach the user's call. None: it failed."""
    try:
        return note(*args)
    except Exception:  # then nobody knows of it
        return None

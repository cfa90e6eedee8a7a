"""Who listens to the places in MLX that every training passes, and what they are told."""

from typing import TYPE_CHECKING, Any

from mlx.optimizers import Optimizer

if TYPE_CHECKING:
    from sleuth.adapters.mlx.watching.compiled import Compiled
    from sleuth.adapters.mlx.watching.differentiated import Differentiated


class Listener:
    """What those are told who listen. Nothing of it may raise, but `speak_up`."""

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

    def step_taken(self) -> None:
        """May raise, where the user asked for it."""


LISTENERS: list[Listener] = []
# The functions that MLX is reading, to compile them: nothing has values in there.
COMPILING: "list[Compiled]" = []

"""`step = sleuth.watch_step(step)`: for steps that are compiled, and so cannot be heard from outside."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.api import watch
from sleuth.core.contract.adapter import Attended, Discovered, Discovers, WrapsSteps
from sleuth.core.errors import UnusableInput
from sleuth.core.report import Report
from sleuth.session.run_folder import RUNS

if TYPE_CHECKING:
    from sleuth.session.on_error import OnError
    from sleuth.session.watch import Watch


def watch_step(
    step: Callable[..., Any],
    *,
    every: int | None = None,
    overhead: float = 0.02,
    name: str = "",
    directory: str | Path | None = RUNS,
    quiet: bool = False,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    on_error: "OnError" = "report",
) -> "WatchedStep":
    """Watch a compiled training step: `step = sleuth.watch_step(step)`, and call it as before.

    For JAX: what `jax.jit`, `nnx.jit` or `eqx.filter_jit` returned, or a function that takes gradients itself. Its result is the
    same to the last bit. Some steps are looked at in full, by a second executable that returns statistics. Inside
    `with sleuth.watch(…)` that watch hears it; otherwise one of its own begins with the first call and ends with the script, or
    by `step.close()`; `step.report()` works at any time. Options are those of `sleuth.watch`.
    """
    from sleuth.adapters import available

    adapter = next((a for a in available() if isinstance(a, WrapsSteps)), None)
    if adapter is None:
        raise UnusableInput(
            "sleuth.watch_step is for compiled steps of JAX, and jax is not imported; for PyTorch use "
            "with sleuth.watch(model, optimizer) around the loop."
        )
    options: dict[str, Any] = {"every": every, "overhead": overhead, "directory": directory, "quiet": quiet}
    options |= {"select": select, "ignore": ignore, "on_error": on_error, "name": name or getattr(step, "__name__", "step")}
    return WatchedStep(adapter, step, options)


class WatchedStep:
    """The step; all else that it had, such as `lower`, it still has."""

    def __init__(self, adapter: Any, step: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, step, updated=())
        self.watch: Watch | None = None
        self._step, self._options = adapter.listened(step), options
        self._discovering = adapter.discover(self._begin) if isinstance(adapter, Discovers) else None
        if self._discovering is not None:
            self._discovering.open()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._step(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._step, name)

    def report(self) -> Report:
        if self.watch is None:
            raise UnusableInput("no step was taken yet, or another watch hears it: ask that one for its report.")
        return self.watch.report()

    def close(self) -> None:
        if self._discovering is not None:
            self._discovering.close()
        if self.watch is not None:
            self.watch.close()

    def _begin(self, found: Discovered) -> Attended:
        if self._discovering is not None:
            self._discovering.close()  # what is trained beside it is not meant
        self.watch = watch(found.model, **self._options)
        return _Own(self.watch)


class _Own(Attended):
    def __init__(self, watch: "Watch") -> None:
        self._watch = watch

    @property
    def steps(self) -> int:
        return self._watch.watching.steps

    def end(self) -> None:
        self._watch.close()

    def drop(self) -> None:
        self._watch.close()

"""Calls of Abacus that a watch hears, and what they are called: nothing else is done here."""

from collections.abc import Callable, Iterator
from typing import Any

from abacus import Array, Module, Optimiser

from sleuth.adapters.listening.listener import Listener
from sleuth.adapters.listening.patches import Patch, Patches, speak_up, tell


class Events(Listener):
    """What may be told. Whoever listens overrides what it wants."""

    def made(self, optimiser: Optimiser) -> None: ...

    def forward(self, module: Module) -> None:
        """It is about to be called."""

    def backward(self, loss: Array) -> None:
        """It is about to begin."""

    def cleared(self, optimiser: Optimiser) -> None: ...

    def before_step(self, optimiser: Optimiser) -> None: ...

    def after_step(self, optimiser: Optimiser) -> None: ...


def _patches(listeners: list[Listener]) -> Iterator[Patch]:
    def make_init(plain: Callable[..., None]) -> Callable[..., None]:
        def init(optimiser: Optimiser, *args: Any, **kwargs: Any) -> None:
            plain(optimiser, *args, **kwargs)
            tell(listeners, "made", optimiser)

        return init

    def make_call(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            tell(listeners, "forward", module)
            return plain(module, *args, **kwargs)

        return call

    def make_backward(plain: Callable[..., None]) -> Callable[..., None]:
        def backward(loss: Array) -> None:
            tell(listeners, "backward", loss)
            plain(loss)

        return backward

    def make_zero_grad(plain: Callable[..., None]) -> Callable[..., None]:
        def zero_grad(optimiser: Optimiser) -> None:
            plain(optimiser)
            tell(listeners, "cleared", optimiser)

        return zero_grad

    def make_step(plain: Callable[..., None]) -> Callable[..., None]:
        def step(optimiser: Optimiser) -> None:
            tell(listeners, "before_step", optimiser)
            speak_up(listeners)  # before anything is written
            plain(optimiser)
            tell(listeners, "after_step", optimiser)
            speak_up(listeners)  # a limit of steps is reached after one

        return step

    yield Patch(Optimiser, "__init__", make_init)
    yield Patch(Module, "__call__", make_call)
    yield Patch(Array, "backward", make_backward)
    yield Patch(Optimiser, "zero_grad", make_zero_grad)
    yield Patch(Optimiser, "step", make_step)


PATCHES = Patches(_patches)

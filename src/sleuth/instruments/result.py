"""What an instrument returns: numbers first, pictures of them where somebody asks."""

from abc import ABC, abstractmethod
from html import escape
from importlib import import_module
from types import ModuleType
from typing import Any

from sleuth.core.errors import UnusableInput


class Result(ABC):
    """Subclasses are frozen dataclasses whose fields are the numbers; `str(result)` is a short table for a terminal."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; arrays become lists, NaN and Inf become text."""

    @abstractmethod
    def plot(self) -> Any:
        """A matplotlib figure of its own: nothing is shown, no global state is touched."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Viewed(Result):
    """Drawn by the module beside its own: `weights_view` has `draw`, `table` and `html` for what `weights` returns."""

    @property
    def _view(self) -> ModuleType:
        return import_module(f"{type(self).__module__}_view")

    def plot(self) -> Any:
        return self._view.draw(self)

    def __str__(self) -> str:
        text: str = self._view.table(self)
        return text

    def _repr_html_(self) -> str:
        html: str = self._view.html(self)
        return html


def new_figure(width: float, height: float) -> Any:
    """Without pyplot, which would keep every figure and choose a window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnusableInput("pictures need matplotlib: pip install matplotlib.") from None
    return Figure(figsize=(width, height), layout="constrained")

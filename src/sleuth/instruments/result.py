"""What an instrument returns: numbers first, pictures of them where somebody asks."""

from abc import ABC, abstractmethod
from html import escape
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


def new_figure(width: float, height: float) -> Any:
    """Without pyplot, which would keep every figure and choose a window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnusableInput("pictures need matplotlib: pip install matplotlib.") from None
    return Figure(figsize=(width, height), layout="constrained")

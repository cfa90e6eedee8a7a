"""The only folder that names a framework. An adapter is imported when its framework already is, never before."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sleuth.core.errors import UnusableInput

if TYPE_CHECKING:
    from sleuth.core.adapter import Adapter


def available() -> "Iterator[Adapter]":
    """Adapters of the frameworks that the user has imported; NumPy, which claims least, comes last."""
    names = sorted((m.name for m in pkgutil.iter_modules(__path__)), key=lambda name: name == "numpy")
    for name in names:
        if name in sys.modules:
            yield adapter_named(name)


def frameworks() -> list[str]:
    """Those that can be told apart by being imported: NumPy is imported by everybody."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "numpy")


def adapter_named(name: str) -> "Adapter":
    return importlib.import_module(f"{__name__}.{name}").ADAPTER


def adapter_for(model: Any) -> "Adapter":
    tried = []
    for adapter in available():
        if adapter.claims(model):
            return adapter
        tried.append(adapter.name)
    raise UnusableInput(
        f"a {type(model).__name__} is not a model that sleuth knows (asked: {', '.join(tried)}). "
        "Give a torch.nn.Module, or an object with forward(x), parameters() and backward()."
    )

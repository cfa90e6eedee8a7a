"""sleuth finds out why a model does not train."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sleuth.api import examine, load, watch
    from sleuth.core.errors import UnusableInput
    from sleuth.core.report import Report
    from sleuth.core.subject import Subject

__all__ = ["Report", "Subject", "UnusableInput", "examine", "load", "watch"]
__version__ = "0.1.0"

# Looked up when first used: a training script that imports sleuth pays for it only where it calls it.
_HOMES = {
    "Report": "sleuth.core.report",
    "Subject": "sleuth.core.subject",
    "UnusableInput": "sleuth.core.errors",
    "examine": "sleuth.api",
    "load": "sleuth.api",
    "watch": "sleuth.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

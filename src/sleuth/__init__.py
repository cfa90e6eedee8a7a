"""sleuth finds out why a model does not train."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sleuth.api import examine, load, replay, scene, watch
    from sleuth.core.errors import Stopped, UnusableInput, Violated
    from sleuth.core.expectation import Expect
    from sleuth.core.report import Report
    from sleuth.core.subject import Subject

__all__ = [
    "Expect", "Report", "Stopped", "Subject", "UnusableInput", "Violated",
    "examine", "load", "replay", "scene", "watch",
]  # fmt: skip
__version__ = "0.1.0"

# Looked up when first used: a training script that imports sleuth pays for it only where it calls it.
_HOMES = {
    "Expect": "sleuth.core.expectation",
    "Report": "sleuth.core.report",
    "Stopped": "sleuth.core.errors",
    "Subject": "sleuth.core.subject",
    "UnusableInput": "sleuth.core.errors",
    "Violated": "sleuth.core.errors",
    "examine": "sleuth.api",
    "load": "sleuth.api",
    "replay": "sleuth.api",
    "scene": "sleuth.api",
    "watch": "sleuth.api",
}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext sleuth`"""
    importlib.import_module("sleuth.notebook").load(shell)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""sleuth finds out why a model does not train."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sleuth.adapters.numpy.forms.functions import ByHand
    from sleuth.api import examine, load, replay, scene, watch
    from sleuth.core.contract.expectation import Expect
    from sleuth.core.errors import Stopped, UnusableInput, Violated
    from sleuth.core.report import Report
    from sleuth.core.subject import Subject
    from sleuth.instruments.activations import activations
    from sleuth.instruments.attention import attention
    from sleuth.instruments.compare import compare
    from sleuth.instruments.dead_units import dead_units
    from sleuth.instruments.feature_maps import feature_maps
    from sleuth.instruments.filters import filters
    from sleuth.instruments.find_lr import find_lr
    from sleuth.instruments.gradcam import gradcam
    from sleuth.instruments.gradcheck import gradcheck
    from sleuth.instruments.gradients import gradients
    from sleuth.instruments.graph import graph
    from sleuth.instruments.health import health
    from sleuth.instruments.landscape import landscape
    from sleuth.instruments.overfit_batch import overfit_batch
    from sleuth.instruments.profile import profile
    from sleuth.instruments.show_batch import show_batch
    from sleuth.instruments.summary import summary
    from sleuth.instruments.trace import trace
    from sleuth.instruments.try_component import try_component
    from sleuth.instruments.weights import weights
    from sleuth.watched_step import watch_step

__all__ = [
    "ByHand", "Expect", "Report", "Stopped", "Subject", "UnusableInput", "Violated",
    "activations", "attention", "compare", "dead_units", "examine", "feature_maps", "filters", "find_lr", "gradcam", "gradcheck",
    "gradients", "graph", "health", "landscape", "load", "overfit_batch", "profile", "replay", "scene", "show_batch", "summary",
    "trace", "try_component", "watch", "watch_step", "weights",
]  # fmt: skip
__version__ = "0.1.0"

# Looked up when first used: a training script that imports sleuth pays for it only where it calls it.
_HOMES = {
    "ByHand": "sleuth.adapters.numpy.forms.functions",
    "Expect": "sleuth.core.contract.expectation",
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
    "watch_step": "sleuth.watched_step",
    "activations": "sleuth.instruments.activations",
    "attention": "sleuth.instruments.attention",
    "compare": "sleuth.instruments.compare",
    "dead_units": "sleuth.instruments.dead_units",
    "feature_maps": "sleuth.instruments.feature_maps",
    "filters": "sleuth.instruments.filters",
    "find_lr": "sleuth.instruments.find_lr",
    "gradcam": "sleuth.instruments.gradcam",
    "gradcheck": "sleuth.instruments.gradcheck",
    "gradients": "sleuth.instruments.gradients",
    "graph": "sleuth.instruments.graph",
    "health": "sleuth.instruments.health",
    "landscape": "sleuth.instruments.landscape",
    "overfit_batch": "sleuth.instruments.overfit_batch",
    "profile": "sleuth.instruments.profile",
    "show_batch": "sleuth.instruments.show_batch",
    "summary": "sleuth.instruments.summary",
    "trace": "sleuth.instruments.trace",
    "try_component": "sleuth.instruments.try_component",
    "weights": "sleuth.instruments.weights",
}

# Callbacks and the like, as sleuth.keras.Watch: each imports its framework.
_OF_FRAMEWORKS = ("keras",)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext sleuth`"""
    importlib.import_module("sleuth.notebook").load(shell)


def __getattr__(name: str) -> Any:
    if name in _OF_FRAMEWORKS:
        return importlib.import_module(f"sleuth.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'sleuth' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

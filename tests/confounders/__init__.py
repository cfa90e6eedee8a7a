"""Sick trainings written from an illness's description alone, by someone who had not read its check.

A module is named after its check; each public function in it builds one training that has that illness and no other.
Those in `healthy` have none: they only look like it.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

from sleuth import Report, Subject, examine
from sleuth.testing import Loop, Training
from tests.watched import watched

Built = Subject | Training | Loop

STAGES = ("data", "model", "batch", "training", "hyperparameters", "resources")


def discover() -> list[tuple[str, str, Callable[[], Built]]]:
    """(check, variant, builder) for every confounder."""
    return [found for stage in STAGES for found in _of_stage(stage)]


def healthy() -> list[tuple[str, str, Callable[[], Built]]]:
    """(topic, variant, builder) for every training that is well and tempts a check to say otherwise."""
    return _of_stage("healthy")


def _of_stage(stage: str) -> list[tuple[str, str, Callable[[], Built]]]:
    package = importlib.import_module(f"{__name__}.{stage}")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return [
        (module.__name__.rsplit(".", 1)[1].replace("_", "-"), variant, builder)
        for module in modules
        for variant, builder in vars(module).items()
        if _builds(builder, module.__name__)
    ]


def _builds(candidate: object, module: str) -> bool:
    if not inspect.isfunction(candidate) or candidate.__module__ != module or candidate.__name__.startswith("_"):
        return False
    signature = inspect.signature(candidate)
    return signature.return_annotation in (Subject, Training, Loop) and not signature.parameters


def judged(built: Built) -> Report:
    """A training whose illness lies in its course is run to its end; of any other the parts are examined."""
    return watched(built) if isinstance(built, Training | Loop) else examine(built, progress=False)

"""Finding the cases of a folder: one file a check, with a sick and a healthy training."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.core.subject import Subject
from sleuth.testing.kit import Kit


@dataclass(frozen=True)
class Training:
    """For a case whose illness lies in the loop and not in its parts: so many steps are taken, then it ends."""

    subject: Subject
    steps: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of sleuth.watch


@dataclass(frozen=True)
class Loop:
    """A loop as a user writes it, for illnesses of the loop itself. `run` is given the watch, for `w.log(…)`, and comes
    to an end."""

    model: Any
    optimisers: Sequence[Any]
    run: Callable[[Any], None]
    options: Mapping[str, Any] = field(default_factory=dict)  # of sleuth.watch
    fails: bool = False  # it ends by an exception, which the watch is to explain


@dataclass(frozen=True)
class Case:
    """`sick` and `healthy` build a Subject where the source is examine, a Training or a Loop where it is watch."""

    name: str  # of the check
    source: str  # "examine", "watch" or "run"
    sick: Callable[[Kit], Any]
    healthy: Callable[[Kit], Any]
    file: Path


def discover(folder: Path) -> list[Case]:
    """Every module below the folder that defines `sick` and `healthy`."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        spec = importlib.util.spec_from_file_location(f"sleuth_case_{file.stem}", file)
        if spec is None or spec.loader is None or file.name == "__init__.py":
            continue
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "sick"):
            source = getattr(module, "SOURCE", "examine")
            found.append(Case(file.stem.replace("_", "-"), source, module.sick, module.healthy, file))
    return found

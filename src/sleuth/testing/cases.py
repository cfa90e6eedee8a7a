"""Finding the cases of a folder: one file a check, with a sick and a healthy training."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sleuth.testing.kit import CannotBuild, Kit


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


def suited(cases: list[Case], twins: Path, kit: Kit) -> list[Case]:
    """The cases as this kit is to build them: by a twin in the folder of its name, where the illness is written another way
    in that framework, and not at all where the kit says that it cannot exist there."""
    own = {case.name: case for case in discover(twins / kit.name)}
    return [_absent(case, kit.absent[case.name]) if case.name in kit.absent else own.get(case.name, case) for case in cases]


def _absent(case: Case, reason: str) -> Case:
    def refuse(kit: Kit) -> NoReturn:
        raise CannotBuild(reason)

    return Case(case.name, case.source, refuse, refuse, case.file)

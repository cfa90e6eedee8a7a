"""A form, whole or with one fault in it, is written to a file, imported, and examined or watched as its author would."""

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import sleuth
from sleuth.api import examine_subject
from sleuth.core.report import Report


def imported(name: str, source: str, folder: Path) -> ModuleType:
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def report_of(name: str, source: str, by: str, folder: Path) -> Report:
    name = "by_hand_" + name.replace("-", "_")
    try:
        module = imported(name, source, folder)
        return _watched(module) if by == "watch" else _examined(module.examined())
    finally:
        sys.modules.pop(name, None)


def _examined(given: dict[str, Any]) -> Report:
    """The budget counts the processor's time: a busy machine examines as much as a quiet one."""
    functions = {k: given.pop(k) for k in ("forward", "backward", "update") if k in given}
    if functions:
        given["model"] = sleuth.ByHand(given["model"], **functions)
    return examine_subject(sleuth.Subject(**given), progress=False, clock=time.process_time)


def _watched(module: ModuleType) -> Report:
    made = []

    def watch(model: Any, optimiser: Any = None) -> Any:
        made.append(sleuth.watch(model, optimiser, directory=None, quiet=True))
        return made[-1]

    try:
        module.watched(watch)
    except Exception as error:  # a loop that fails is told of as well
        if not isinstance(error, ValueError | TypeError | IndexError | FloatingPointError):
            raise
    return made[-1].report()

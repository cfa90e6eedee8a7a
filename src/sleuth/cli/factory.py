"""`file.py:factory`: load the file as Python would, call the factory, and take what it returns apart."""

import ast
import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from sleuth.cli.users_error import describe
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject
from sleuth.core.words import kind_of

PARTS = tuple(f.name for f in fields(Subject))
OPTIONS = ("budget_seconds", "select", "ignore")
EXAMPLE = 'return {"model": model, "train": loader, "loss": loss, "optimizer": optimizer}'


@dataclass(frozen=True)
class Given:
    """What a factory returned: the parts to examine, and the options that flags may override."""

    subject: Subject
    options: Mapping[str, Any]


def load(target: str) -> Given:
    return _given(build(target), target)


def build(target: str) -> Any:
    """What the factory returns, whatever it is."""
    file_name, factory_name = _split(target)
    module = _import(Path(file_name))
    factory = _find(module, factory_name, file_name)
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise UnusableInput(f"{factory_name}() of {file_name} raised {describe(error)}") from None


def _split(target: str) -> tuple[str, str]:
    file_name, colon, factory_name = target.rpartition(":")
    if not colon or factory_name.endswith(".py"):
        file = Path(target)
        if file.suffix == ".py" and not file.exists():
            raise UnusableInput(f"there is no file {target}.")
        raise UnusableInput(f"{target} names no function; write file.py:factory, such as {_suggestion(file)}.")
    return file_name, factory_name


def _suggestion(file: Path) -> str:
    """A function that is really there, found without running the file."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return "train.py:training"
    names = [n.name for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    return f"{file}:{names[0] if names else 'training'}"


def _import(file: Path) -> ModuleType:
    if file.is_dir():
        raise UnusableInput(f"{file} is a folder; give the Python file in it.")
    if not file.exists():
        raise UnusableInput(f"there is no file {file}.{_near(file)}")
    if file.suffix != ".py":
        raise UnusableInput(f"{file} is not a Python file; it must end in .py.")
    # As `python file.py` does: modules beside the file can be imported.
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Under its own name, so that loader workers find its classes; a name that is taken is left alone.
    name = file.stem if file.stem not in sys.modules else f"examined_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SystemExit:
        raise UnusableInput(
            f"{file} ended the program while it was imported; put what runs under `if __name__ == '__main__':`."
        ) from None
    except Exception as error:
        raise UnusableInput(f"{file} cannot be imported: {describe(error)}") from None
    return module


def _near(file: Path) -> str:
    folder = file.parent
    names = [p.name for p in folder.glob("*.py")] if folder.is_dir() else []
    close = difflib.get_close_matches(file.name, names, n=1)
    return f" Did you mean {folder / close[0]}?" if close else ""


def _find(module: ModuleType, name: str, file_name: str) -> Callable[[], Any]:
    found = getattr(module, name, None)
    if found is None:
        own = [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]
        there = f"It has: {', '.join(own)}." if own else f"It defines no function; write one that ends with: {EXAMPLE}"
        raise UnusableInput(f"{file_name} has no function {name!r}. {there}")
    if not callable(found):
        raise UnusableInput(f"{name} of {file_name} is {kind_of(found)}, not a function that returns what to examine.")
    needed = _needed(found)
    if needed:
        raise UnusableInput(
            f"{name}() of {file_name} wants arguments ({', '.join(needed)}); sleuth calls it without any: give them defaults."
        )
    return found


def _needed(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable without a signature
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _given(returned: Any, target: str) -> Given:
    if isinstance(returned, Subject):
        return Given(_named(returned, target), {})
    if not isinstance(returned, Mapping):
        what = "None (is a `return` missing?)" if returned is None else kind_of(returned)
        raise UnusableInput(f"{target} returned {what}; expected a dict or a sleuth.Subject, such as: {EXAMPLE}")
    for key in returned:
        if key not in (*PARTS, *OPTIONS):
            close = difflib.get_close_matches(str(key), (*PARTS, *OPTIONS), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" It may have: {', '.join((*PARTS, *OPTIONS))}."
            raise UnusableInput(f"the dict of {target} has the key {key!r}, which sleuth does not know.{hint}")
    for key in ("model", "train"):
        if returned.get(key) is None:
            raise UnusableInput(f"the dict of {target} has no {key!r}; return at least model and train, such as: {EXAMPLE}")
    budget = returned.get("budget_seconds", 1)
    if not isinstance(budget, int | float):
        raise UnusableInput(f"budget_seconds of {target} is {budget!r}; expected a number of seconds.")
    parts = {key: value for key, value in returned.items() if key in PARTS}
    options = {key: value for key, value in returned.items() if key in OPTIONS}
    return Given(_named(Subject(**parts), target), options)


def _named(subject: Subject, target: str) -> Subject:
    return subject if subject.name else replace(subject, name=target)

"""What is to be run: a file, a folder or archive with a `__main__.py`, or a module by its name."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sleuth.core.errors import UnusableInput


@dataclass(frozen=True)
class Target:
    name: str  # as typed
    arguments: tuple[str, ...]
    is_module: bool

    @property
    def words(self) -> list[str]:
        """What stands behind `python` on a command line."""
        return [*(["-m"] if self.is_module else []), self.name, *self.arguments]


def target_of(words: Sequence[str], *, is_module: bool) -> Target:
    if not words:
        wanted = "the module's name: sleuth run -m package.module" if is_module else "the script: sleuth run train.py"
        raise UnusableInput(f"nothing to run; name {wanted}")
    name, *arguments = words
    if not is_module:
        _require_file(name)
    return Target(name, tuple(arguments), is_module)


def _require_file(name: str) -> None:
    if not os.path.exists(name):
        near = Path(f"{name}.py")
        hint = f" Did you mean {near}?" if near.exists() else ""
        if not near.exists() and "." in name and os.sep not in name and not name.endswith(".py"):
            hint = f" For a module write: sleuth run -m {name}"
        raise UnusableInput(f"there is no file {name}.{hint}")

"""`[tool.sleuth]` of pyproject.toml: select, ignore with a reason, thresholds by check name."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.core.check import Check
from sleuth.core.errors import UnusableInput


@dataclass(frozen=True)
class Configuration:
    """Checks are named by code or by name; an empty `select` means all."""

    select: tuple[str, ...] = ()
    ignore: Mapping[str, str] = field(default_factory=dict)  # name or code → reason
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def selects(self, check: Check) -> bool:
        return not self.select or check.name in self.select or check.code in self.select

    def ignore_reason(self, check: Check) -> str | None:
        return self.ignore.get(check.name, self.ignore.get(check.code))

    def thresholds_for(self, check: Check) -> Mapping[str, Any]:
        return self.thresholds.get(check.name, {})


def read_configuration(start: Path, checks: Iterable[Check]) -> Configuration:
    """The settings of the nearest pyproject.toml at or above `start`; the defaults when there is none."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return parse_configuration(_table(file), checks, str(file))
    return Configuration()


def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text()).get("tool", {}).get("sleuth", {})
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{file} cannot be read: {error}") from None


def parse_configuration(table: Mapping[str, Any], checks: Iterable[Check], source: str) -> Configuration:
    checks = tuple(checks)
    by_word = {word: check for check in checks for word in (check.name, check.code)}
    for key in table:
        if key not in ("select", "ignore", "thresholds"):
            raise UnusableInput(f"{source}: [tool.sleuth] has no setting {key!r}; use select, ignore or thresholds.")
    select = _names(table.get("select", []), by_word, f"{source}: select")
    ignore = table.get("ignore", {})
    if not isinstance(ignore, Mapping):
        raise UnusableInput(
            f'{source}: ignore is a table with a reason each, such as ignore = {{ frozen-parameters = "trunk is pretrained" }}.'
        )
    _names(ignore, by_word, f"{source}: ignore")
    for name, reason in ignore.items():
        if not isinstance(reason, str) or not reason.strip():
            raise UnusableInput(f"{source}: ignore of {name!r} needs a reason in words.")
    thresholds = table.get("thresholds", {})
    _names(thresholds, by_word, f"{source}: thresholds")
    for name, values in thresholds.items():
        _check_thresholds(by_word[name], values, source)
    by_name = {by_word[name].name: dict(values) for name, values in thresholds.items()}
    return Configuration(tuple(select), dict(ignore), by_name)


def _names(words: Any, known: Mapping[str, Check], source: str) -> list[str]:
    words = [words] if isinstance(words, str) else list(words)
    for word in words:
        if word not in known:
            close = difflib.get_close_matches(str(word), known, n=1)
            hint = f" Did you mean {close[0]}?" if close else " `sleuth checks` lists them."
            raise UnusableInput(f"{source}: there is no check {word!r}.{hint}")
    return words


def _check_thresholds(check: Check, values: Any, source: str) -> None:
    known = check.thresholds
    for key, value in dict(values).items():
        if key not in known:
            names = ", ".join(known) or "none"
            raise UnusableInput(f"{source}: {check.name} has no threshold {key!r}; it has: {names}.")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise UnusableInput(f"{source}: {check.name}.{key} must be a number, not {value!r}.")

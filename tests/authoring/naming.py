"""The name of a check, its two files and its code."""

import difflib
import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from sleuth.checks import all_checks
from sleuth.core.check import Check
from sleuth.core.stage import Stage
from sleuth.views.symptoms import search
from tests.golden_tables import WIDTH

ROOT = Path(__file__).parents[2]
SHAPE = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
# A check is named after the illness: these begin the name of a deed, a cure or a doubt.
NOT_AN_ILLNESS = {
    "add", "avoid", "check", "detect", "find", "fix", "maybe", "possible", "reduce", "should", "test", "try", "use", "verify",
}  # fmt: skip
# A row of a golden table has so much room for the name.
LONGEST = WIDTH - 2


class NameRefused(Exception):
    """What is wrong with the name, and what to type instead."""


@dataclass(frozen=True)
class Place:
    """Where the two files of a check stand."""

    name: str  # with hyphens
    stage: Stage

    @property
    def function(self) -> str:
        return self.name.replace("-", "_")

    @property
    def check(self) -> Path:
        return ROOT / "src" / "sleuth" / "checks" / self.stage.value / f"{self.function}.py"

    @property
    def case(self) -> Path:
        return ROOT / "tests" / "cases" / self.stage.value / f"{self.function}.py"


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


def new_place(name: str, stage: Stage) -> Place:
    """Raises NameRefused where no check may have this name."""
    if not SHAPE.fullmatch(name):
        raise NameRefused(
            f"{name!r} is no name of a check: write lower-case words with hyphens between them, such as vanishing-gradients."
        )
    place = Place(name.replace("_", "-"), stage)
    first = place.name.split("-")[0]
    if first in NOT_AN_ILLNESS:
        raise NameRefused(
            f'{place.name!r} begins with {first!r}. A check is named after the illness: "I had {place.name.replace("-", " ")}" '
            "must be English, as in vanishing-gradients or labels-misaligned."
        )
    if keyword.iskeyword(place.function) or len(place.name) > LONGEST:
        raise NameRefused(f"{place.name!r} cannot be used: at most {LONGEST} characters, and no word of Python's own.")
    for file in (*_named(place, "src/sleuth/checks"), *_named(place, "tests/cases")):
        raise NameRefused(f"{place.name!r} is taken: {shown(file)}. To work on it, run ./dev check {place.name}.")
    return place


def known_place(name: str) -> Place:
    """Raises NameRefused where there is no such check."""
    name = name.replace("_", "-")
    stages = {check.name: check.stage for check in all_checks()}
    if name not in stages:
        close = difflib.get_close_matches(name, stages, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"./dev new-check {name} begins one."
        raise NameRefused(f"there is no check {name!r}. {hint}")
    place = Place(name, stages[name])
    for file in (place.check, place.case):
        if not file.exists():
            raise NameRefused(
                f"{shown(file)} is missing: check, file, function and case have one name, and the folder is the stage."
            )
    return place


def check_of(place: Place) -> Check:
    return next(check for check in all_checks() if check.name == place.name)


def similar(name: str) -> list[Check]:
    """Checks that may be the same illness under another name, by the search that users have."""
    answer = search(name.replace("-", " "), all_checks())
    # A skeleton that nobody has filled in yet tells nothing.
    return [check for check in answer.checks[:3] if "TODO" not in check.title] if answer is not None else []


def free_code(stage: Stage) -> str:
    """One above the highest of the stage: a code that was given up is not given again."""
    numbers = [int(check.code[1:]) for check in all_checks() if check.stage is stage]
    return f"{stage.letter}{max(numbers, default=100 * (stage.rank + 1)) + 1}"


def _named(place: Place, folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob(f"{place.function}.py"))

"""The rules that hold for every check, by the tests that assert them; and what must be written by hand beside the two files."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sleuth.adapters import SPOKEN, advice_in
from sleuth.core.check import Check
from tests.authoring.advice import speaks_torch
from tests.authoring.naming import ROOT, Place, shown

# Names, codes and texts; `explains` without circles; a page that fits; found by its own symptoms.
TEXTS = (
    "tests/test_contracts.py",
    "tests/core/test_diagnosis.py::test_explains_is_acyclic",
    "tests/views/test_explain.py::test_every_check_has_a_page_that_fits_the_screen",
    "tests/views/test_explain.py::test_the_settings_on_every_page_can_be_pasted",
    "tests/views/test_symptoms.py",
)
# A text that people read; a new check may change it.
SEARCH = "tests/views/test_symptoms.py::test_what_is_found_for_common_symptoms_is_on_record"
# After everything is written.
PAGES = "tests/views/test_pages.py"


def pytest_fails(tests: tuple[str, ...], *options: str) -> str:
    """What pytest says of the tests that fail; empty where none does."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *options, *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def style_fails(place: Place) -> str:
    """Both files are formatted; what ruff and mypy then find in them is returned."""
    files = [shown(place.check), shown(place.case)]
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *files], cwd=ROOT, check=False)
    said = [_said("ruff", "check", "--quiet", *files), _said("mypy", "--no-error-summary", files[0])]
    return "\n".join(text for text in said if text)


def _said(module: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def advice_missing(check: Check) -> Iterator[str]:
    """Users of other frameworks would be told to type torch."""
    from tests.conftest import kits

    others = [kit.name for kit in kits() if kit.name != SPOKEN and check.name not in kit.absent]
    lacking = [name for name in others if check.name not in advice_in(name)]
    if lacking and (words := speaks_torch(check)):
        yield (
            f"its fix speaks torch ({', '.join(words)}): add [{check.name}] to src/sleuth/adapters/advice.toml, with the fix in "
            f"the words of {', '.join(lacking)} (`others` stands for all), or word the fix so that it holds everywhere"
        )


def by_hand(check: Check) -> Iterator[str]:
    """What no command can write, and no test asks for."""
    if not check.symptoms or not check.decided_by:
        yield "symptoms and decided_by are empty: `sleuth explain` finds the check by them"
    if not _mentions(ROOT / "CHANGELOG.md", check.name):
        yield "CHANGELOG.md does not name it: add a line for users"


def _mentions(file: Path, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", file.read_text(encoding="utf-8")) is not None

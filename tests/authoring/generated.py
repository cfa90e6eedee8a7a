"""The files that follow from a check and its case: rows of the golden tables, the golden symptom search, pages and examples."""

import difflib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests import golden_tables
from tests.authoring.naming import ROOT, shown
from tests.authoring.rules import PAGES, SEARCH, pytest_fails
from tests.authoring.runs import Outcome

GENERATED = (
    "tests/golden/cases/*.txt",
    "tests/golden/symptoms.txt",
    "docs/checks/*.md",
    "docs/frameworks.md",
    "src/sleuth/views/examples/*.toml",
)
READ_AS_DIFF = "tests/golden"

Texts = Mapping[Path, str]


def texts() -> Texts:
    return {file: file.read_text(encoding="utf-8") for pattern in GENERATED for file in ROOT.glob(pattern)}


def changed_rows(name: str, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Rows that say something else than what was found now."""
    for outcome in _with_rows(outcomes):
        row = golden_tables.rows(outcome.run.kit).get(name)
        if row is not None and not (outcome.row and golden_tables.agree(outcome.row, row)):
            now = repr(outcome.row) if outcome.row else f"none ({outcome.cannot_build})"
            yield f"the golden row in {outcome.run.kit} was {row!r} and is {now} now: --update-golden writes it"


def write_rows(name: str, outcomes: Iterable[Outcome]) -> None:
    for outcome in _with_rows(outcomes):
        golden_tables.write_row(outcome.run.kit, name, outcome.row or None)


def _with_rows(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.run.kind == "sick" and not (o.elsewhere or o.error or o.raised)]


def write_search() -> str:
    """Empty, or why it could not be written."""
    return pytest_fails((SEARCH,), "--update-golden")


def write_pages(name: str) -> str:
    """The page of the check with what is said of its sick case, and the lists of all checks. Empty, or what is wrong."""
    done = subprocess.run([sys.executable, "docs/generate.py", "--findings", name], cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else pytest_fails((PAGES,), "-k", f"{name} or index")


def written(before: Texts, after: Texts) -> list[str]:
    return sorted(shown(file) for file in {*before, *after} if before.get(file) != after.get(file))


def golden_diff(before: Texts, after: Texts) -> Iterator[str]:
    """Line by line, of the files that are read as a diff."""
    for file in sorted({*before, *after}):
        old, new = before.get(file, ""), after.get(file, "")
        if old != new and shown(file).startswith(READ_AS_DIFF):
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
            yield shown(file)
            yield from (f"  {line}" for line in list(lines)[2:] if not line.startswith("@@"))

"""What sleuth found in every sick case: one table a framework, `tests/golden/cases/<kit>.txt`, a row a case, sorted by name.

A row is the case, then the symptoms of its illness in the order of the report, or `-` if there are none. The case itself is
the first culprit; further culprits follow after a semicolon, each with its own symptoms:

    exploding-gradients             -; weights-grow: -

Symptoms of equal weight come in an order that the last bits of floats decide, and those differ between processors: symptoms are
compared as a set. One with a question mark was seen on some machines only.
"""

import fcntl
from collections.abc import Mapping
from pathlib import Path

from sleuth import Report
from sleuth.core.diagnosis import Culprit

FOLDER = Path(__file__).parent / "golden" / "cases"
# Fixed, so that a long name that is added moves no other row.
WIDTH = 32


def table(kit: str, folder: Path = FOLDER) -> Path:
    return folder / f"{kit}.txt"


def rows(kit: str, folder: Path = FOLDER) -> dict[str, str]:
    """By case, what was found. Without a table there are none."""
    file = table(kit, folder)
    return _read(file.read_text(encoding="utf-8")) if file.exists() else {}


def write_row(kit: str, case: str, found: str | None, folder: Path = FOLDER) -> None:
    """Changes this row and no other; None removes it. Several processes may write to one table."""
    folder.mkdir(parents=True, exist_ok=True)
    with table(kit, folder).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        file.seek(0)
        kept = _read(file.read())
        kept.pop(case, None)
        if found is not None:
            kept[case] = found
        file.truncate(0)
        file.write(text_of(kept))


def text_of(found: Mapping[str, str]) -> str:
    return "".join(f"{case:{WIDTH - 1}} {found[case]}\n" for case in sorted(found))


def found_in(report: Report) -> str:
    """The row of a sick case whose own name is the first culprit."""
    first, *others = report.culprits
    return "; ".join([_symptoms(first), *(f"{other.finding.name}: {_symptoms(other)}" for other in others)])


def agree(found: str, row: str) -> bool:
    """Culprits in their order; of each the same symptoms, in any order."""
    one, other = _culprits(found), _culprits(row)
    if [name for name, _ in one] != [name for name, _ in other]:
        return False
    for (_, seen), (_, expected) in zip(one, other, strict=True):
        sure = {name for name in expected if not name.endswith("?")}
        if not sure <= seen <= {name.removesuffix("?") for name in expected}:
            return False
    return True


def _culprits(row: str) -> list[tuple[str, set[str]]]:
    """The first one is the case itself and has no name here."""
    parts = [part.rpartition(": ") for part in row.split("; ")]
    return [(name, set() if symptoms == "-" else set(symptoms.split(", "))) for name, _, symptoms in parts]


def _symptoms(culprit: Culprit) -> str:
    return ", ".join(symptom.name for symptom in culprit.symptoms) or "-"


def _read(text: str) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in text.splitlines())

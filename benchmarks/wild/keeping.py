"""What was run is kept, so that an interrupted benchmark goes on where it was, and other code of sleuth needs no plain runs."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.wild.lists import Fault, Script
from benchmarks.wild.scratch import Outcome

ERRORS_KEPT = 2000


def digest_of(folder: Path) -> str:
    """Of the code of sleuth: a run by other code is another run."""
    sources = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".c", ".h"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


class Shelf:
    """A folder with one file a run. `about` is what was run: when that changes, the file counts no longer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, name: str, about: Script | Fault) -> tuple[Outcome, dict[str, Any] | None] | None:
        path = self._path(name)
        kept = json.loads(path.read_text()) if path.exists() else {}
        if kept.get("about") != _key(about):
            return None
        outcome = kept["outcome"]
        return Outcome(**{**outcome, "lines": tuple((moment, line) for moment, line in outcome["lines"])}), kept["report"]

    def put(self, name: str, about: Script | Fault, outcome: Outcome, report: dict[str, Any] | None = None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"about": _key(about), "outcome": {**asdict(outcome), "errors": outcome.errors[-ERRORS_KEPT:]}, "report": report}
        half = self._path(name).with_suffix(".half")
        half.write_text(json.dumps(kept))
        half.replace(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name.replace('/', '--')}.json"


def _key(about: Script | Fault) -> str:
    return hashlib.sha256(about.run_of().encode()).hexdigest()

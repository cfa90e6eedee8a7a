"""One script of the lists, tried: run as far as no kept run tells the same, and judged."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.wild.judging import Healthy, Planted, judge_healthy, numbers, read_report
from benchmarks.wild.keeping import Shelf
from benchmarks.wild.lists import Edit, Fault, Script, line_of
from benchmarks.wild.scratch import Outcome, Workshop


class NotKept(Exception):
    """Nothing may be run, and no run is kept."""


@dataclass(frozen=True)
class Trial:
    workshop: Workshop
    kept: Path
    sleuth: str  # which code: its digest
    only_kept: bool = False

    def plainly(self, name: str, script: Script, fault: Fault | None = None, turn: str = "") -> Outcome:
        shelf, about = Shelf(self.kept / "plain"), fault or script
        if found := shelf.take(name + turn, about):
            return found[0]
        folder = self._copy(name, script, [fault.edit] if fault else [])
        outcome = self.workshop.plainly(script, folder)
        shelf.put(name + turn, about, outcome)
        return outcome

    def healthy(self, script: Script) -> Healthy:
        first = self.plainly(script.name, script)
        watched, report = self._watched("healthy", script.name, script, script, [])
        # A second plain run tells which numbers are repeatable: only needed where the first differs from the watched one.
        same = numbers(first.text) == numbers(watched.text)
        second = first if same else self.plainly(script.name, script, turn="--again")
        return judge_healthy(script, first, second, watched, read_report(report))

    def planted(self, fault: Fault) -> Planted:
        watched, report = self._watched("planted", fault.name, fault, fault.script, [fault.edit])
        line = report.pop("expected_line", None) if report else None
        return Planted(fault, read_report(report), line, watched.code, watched.seconds)

    def _watched(self, kind: str, name: str, about: Script | Fault, script: Script, edits: list[Edit]) -> Any:
        shelf = Shelf(self.kept / self.sleuth / kind)
        if found := shelf.take(name, about):
            return found
        folder = self._copy(name, script, edits)
        expected = line_of(about, folder) if isinstance(about, Fault) else None
        path = self.workshop.place / "report.json"
        path.unlink(missing_ok=True)
        outcome = self.workshop.under_sleuth(script, folder, path)
        report = {**(json.loads(path.read_text()) if path.exists() else {}), "expected_line": expected}
        shelf.put(name, about, outcome, report)
        return outcome, report

    def _copy(self, name: str, script: Script, edits: list[Edit]) -> Path:
        if self.only_kept:
            raise NotKept(name)
        return self.workshop.copy(script, edits)

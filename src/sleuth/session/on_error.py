"""What happens when something goes wrong in a running training: a line, a stop, a call, a scene on disk."""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from sleuth.core.contract.guard import Act, Alarm, Draft
from sleuth.core.contract.scene import MOST_BYTES, MOST_SCENES
from sleuth.core.errors import Stopped, UnusableInput, Violated
from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.store.scenes import write_scene

OnError = Literal["report", "warn", "stop"] | Callable[[Finding], None]


def require_on_error(given: OnError) -> OnError:
    if given in ("report", "warn", "stop") or callable(given):
        return given
    raise UnusableInput(f'on_error={given!r} is not known; give "report", "warn", "stop" or a function that takes the finding.')


class Reactions:
    """Each name is acted on once. Scenes are written by whoever calls `write`: not the training thread."""

    def __init__(self, on_error: OnError, folder: Path | None) -> None:
        self.on_error, self.folder = on_error, folder
        self.notes: list[str] = []
        self._acted: set[str] = set()
        self._asked: set[str] = set()
        self._waiting: deque[tuple[int, Draft]] = deque()
        self._writing = threading.Lock()
        self._scenes, self._bytes = 0, 0
        self._trouble: str | None = None

    @property
    def stops(self) -> bool:
        return self.on_error == "stop"

    def room(self) -> int:
        if self.folder is None or self._trouble is not None or self._scenes >= MOST_SCENES:
            return 0
        return MOST_BYTES - self._bytes

    def wanted(self, findings: Iterable[Finding]) -> list[Finding]:
        """Of what the checks found just now: the new ones that ask for something to be done at the next step.

        A finding that another error explains is its symptom, and nothing is done about it."""
        errors = [f for f in findings if f.severity is Severity.ERROR]
        names = {f.name for f in errors}
        new = [f for f in errors if f.explained_by not in names and f.name not in self._asked | self._acted]
        self._asked |= {f.name for f in new}
        for finding in new:
            if self.on_error == "warn":
                self._acted.add(finding.name)
                self._warn(finding.name, finding.summary, finding.first_step)
        acts = self.stops or callable(self.on_error)
        return [f for f in new if acts or self.room()]

    def heard(self, alarm: Alarm, finding: Finding | None) -> Act | None:
        """On the training thread. None: nothing is to be done there."""
        if alarm.draft is not None:
            self._scenes += 1
            self._bytes += alarm.draft.size
            self._waiting.append((self._scenes, alarm.draft))
        if alarm.asserted or finding is None:
            self.notes.append(alarm.message)
        self.notes += [f"step {alarm.step}: {remark}" for remark in alarm.remarks]
        if not (alarm.asserted or finding is not None) or alarm.name in self._acted:
            return None
        if alarm.name:
            self._acted.add(alarm.name)
        return self._act(alarm, finding)

    def _act(self, alarm: Alarm, finding: Finding | None) -> Act | None:
        what, summary = (finding.name, finding.summary) if finding is not None else ("assertion", alarm.message)
        match self.on_error:
            case "warn":
                self._warn(what, summary, alarm.step)
            case "stop":
                return Act(lambda: self._stop(f"{what}: {summary}", finding), waits=alarm.finding is None and finding is not None)
            case "report":
                pass
            case function:
                return Act(lambda: function(finding or _as_finding(alarm)))
        return None

    def _stop(self, message: str, finding: Finding | None) -> None:
        self.write()  # the process may end without another word
        kind = Stopped if finding is not None else Violated
        raise kind(f"{message}{self._where()}", finding)

    def _warn(self, name: str, summary: str, step: int | None) -> None:
        at = "" if step is None or f"step {step}" in summary else f"step {step} · "
        print(f"sleuth · {at}{name}: {summary}", file=sys.stderr, flush=True)

    def _where(self) -> str:
        kept = self.folder is not None and self._scenes and self._trouble is None
        return f" (kept: sleuth replay {self.folder} --scene {self._scenes} model.py:build)" if kept else ""

    def write(self) -> None:
        with self._writing:
            while self._waiting:
                number, draft = self._waiting.popleft()
                if self.folder is None or self._trouble is not None:
                    continue
                try:
                    write_scene(self.folder, number, draft.facts, draft.arrays())
                except (OSError, ImportError) as error:
                    self._trouble = f"{type(error).__name__}: {error}"
                    self.notes.append(f"scene {number} could not be kept in {self.folder}: {self._trouble}")
                else:
                    of = draft.facts["name"] or "an assertion"
                    again = f"sleuth replay {self.folder} --scene {number} model.py:build"
                    self.notes.append(f"scene {number} keeps step {draft.facts['step']}, at {of}: {again}")


def _as_finding(alarm: Alarm) -> Finding:
    """What the user asserted has no check: the function is given a finding all the same."""
    return Finding(
        code="",
        name="assertion",
        stage=Stage.TRAINING,
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        title="A layer's output is not what was asserted",
        summary=alarm.message,
        why="",
        fix="",
        first_step=alarm.step,
        last_step=alarm.step,
    )

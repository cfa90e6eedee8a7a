"""What the pages show, as plain data: everything is computed here, and the browser only draws it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sleuth.core.errors import UnusableInput
from sleuth.store.following import FollowedRun
from sleuth.ui.answer import Answer, answer_at, answer_of, as_json
from sleuth.ui.compare import Side, compare
from sleuth.ui.judging import Judge, Judged
from sleuth.ui.paced import Paced
from sleuth.ui.runs import Runs, Summary, find
from sleuth.ui.spoken import spoken
from sleuth.ui.verdict import parts_without
from sleuth.views.charts import CHARTS, POINTS, Chart, Material

# Most runs are judged in less: their page comes whole, and nothing moves when the verdict arrives.
FIRST_WAIT_SECONDS = 1.0
# Runs whose curves stay in memory: those that somebody looks at.
MOST_FOLLOWED = 16
# Answers that stay in memory: the sections of some runs.
MOST_ANSWERS = 64
# More curves in one picture cannot be told apart.
MOST_COMPARED = 8


class Board:
    def __init__(self, runs: Runs, judge: Judge) -> None:
        self.runs, self.judge = runs, judge
        self._followed: Paced[FollowedRun] = Paced(MOST_FOLLOWED)
        self._answers: Paced[bytes] = Paced(MOST_ANSWERS)

    def listing(self) -> Answer:
        rows = [self._row(self.runs.summary(name)) for name in self.runs.names()]
        return answer_of(as_json({"folder": str(self.runs.folder.resolve()), "runs": rows}))

    def run(self, name: str) -> Answer:
        summary = self.runs.summary(name)
        if summary.trouble:
            page = {"judging": False, "parts": parts_without(summary.trouble), **_in_short(None)}
        else:
            judged = self._judged(summary, urgent=True) or self.judge.wait(self.runs.folder / name, FIRST_WAIT_SECONDS)
            page = {
                "judging": judged is None or judged.mark != self.runs.mark(name),
                "parts": judged.parts if judged else parts_without(),
                **_in_short(judged),
            }
        return answer_of(as_json({"summary": summary.to_dict(), **page}))

    def charts(self, name: str, group: str) -> Answer:
        if group not in CHARTS:
            raise LookupError(group)
        judged = self.judge.known(self.runs.folder / name)
        report = judged.report if judged else None
        version = (self.runs.mark(name), judged.mark if judged else None)

        def make() -> bytes:
            return as_json({"charts": _plain(CHARTS[group](Material(self._follow(name), report), POINTS))})

        return answer_at(*self._answers.get((name, group), version, make))

    def compare(self, names: Sequence[str]) -> Answer:
        # The oldest first: against it the others are told.
        names = tuple(sorted(set(names))[:MOST_COMPARED])
        if not names:
            raise UnusableInput("tick the runs that are to be compared in the list of runs.")
        sides = [Side(name, self.runs.file(name), self._follow(name)) for name in names]

        def make() -> bytes:
            found = compare(sides)
            return as_json({**found, "charts": _plain(found["charts"])})

        version = tuple(self.runs.mark(name) for name in names)
        comparison = self._answers.get(("compare", *names), version, make)[1]
        rows = as_json([self._row(self.runs.summary(name)) for name in names])
        return answer_of(b'{"runs":' + rows + b',"comparison":' + comparison + b"}")

    def _row(self, summary: Summary) -> dict[str, Any]:
        return {**summary.to_dict(), **_in_short(None if summary.trouble else self._judged(summary))}

    def _follow(self, name: str) -> FollowedRun:
        file = self.runs.file(name)
        return self._followed.get(name, None, lambda: FollowedRun(file))[1]

    def _judged(self, summary: Summary, *, urgent: bool = False) -> Judged | None:
        mark = self.runs.mark(summary.name)
        return self.judge.latest(self.runs.folder / summary.name, mark, urgent=urgent, final=summary.ended is not None)


def open_board(folder: Path) -> Board:
    from sleuth.api import load

    return Board(find(folder), Judge(load))


def _in_short(judged: Judged | None) -> dict[str, Any]:
    """The verdict in a few words. Nothing is said before something was judged."""
    if judged is None:
        return {"verdict": None, "culprit": None, "title": ""}
    report = judged.report
    if report is None:
        return {"verdict": "unknown", "culprit": None, "title": judged.trouble}
    first = report.culprits[0].finding if report.culprits else None
    return {"verdict": report.status, "culprit": first.name if first else None, "title": first.title if first else ""}


def _plain(charts: Iterable[Chart]) -> list[dict[str, Any]]:
    return [{**vars(chart), "spoken": spoken(chart)} for chart in charts]

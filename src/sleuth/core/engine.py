"""One loop: keep a bounded history of observations and show it to the checks."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from sleuth.core.check import Check, Evidence, NotExamined, Readable
from sleuth.core.finding import Finding
from sleuth.core.history import History, Seen
from sleuth.core.ignore_comments import Allowed, allowed_at
from sleuth.core.location import Location
from sleuth.core.observation import Observation, Role, Step
from sleuth.core.reading.lines import line_of
from sleuth.core.settings import Configuration
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Trial

NAMES = {
    "Architecture": "the model was not described",
    "Settings": "the settings were not seen",
    "Batch": "no data was seen",
    "LossCall": "no call of a loss was seen",
    "Step": "no training step was seen",
    "Evaluation": "no metric was logged, and no validation was recognised",
    "Predictions": "no loss was heard that takes one class a sample",
    "Ending": "the end of a training was not seen",
    "Call": "the calls of a loop were not seen, only what its steps computed",
    "Units": "no activity of single units was seen",
    "Modes": "calls of the model itself were not heard",
    "Optimiser": "no step of an optimiser was heard",
    "Precision": "the dtypes that layers compute in were not seen",
    "Failure": "nothing was run that could have failed",
    "Misfit": "no run was seen to its end, and no checkpoint was refused",
    "OutOfMemory": "no run was seen to its end, and memory was not wanting",
    "Retention": "no step with a graph was seen",
    "Memory": "the memory of the process was not read",
}


@dataclass(frozen=True)
class Judgement:
    findings: tuple[Finding, ...]
    clear: tuple[str, ...]
    not_examined: dict[str, str]  # name → reason
    ignored: dict[str, str]  # name → the user's reason, for checks that would have found something
    ignored_at: dict[str, Location] = field(default_factory=dict)  # where the reason stands on the user's own line


class Engine:
    def __init__(self, checks: Iterable[Check], configuration: Configuration | None = None) -> None:
        self._configuration = configuration or Configuration()
        self.checks = tuple(c for c in checks if self._configuration.selects(c))
        self.history = History()

    def emit(self, observation: Observation) -> None:
        self.history.add(observation)

    def judge(self) -> Judgement:
        findings: list[Finding] = []
        clear: list[str] = []
        not_examined: dict[str, str] = {}
        ignored: dict[str, str] = {}
        ignored_at: dict[str, Location] = {}
        for check in self.checks:
            missing = self._missing(check)
            if missing is not None:
                not_examined[check.name] = missing
                continue
            found, reason, allowed = self._run(check)
            if found and (why := self._configuration.ignore_reason(check)) is not None:
                ignored[check.name] = why
                continue
            if allowed is not None:
                ignored[check.name], ignored_at[check.name] = allowed.reason, allowed.location
            if found:
                findings.extend(found)
            elif allowed is not None:
                continue
            elif reason is not None:
                not_examined[check.name] = reason
            else:
                clear.append(check.name)
        return Judgement(tuple(findings), tuple(clear), not_examined, ignored, ignored_at)

    def find(self, name: str) -> Finding | None:
        """Asks one check, by its name. None: it is not selected, it is ignored, or it finds nothing."""
        check = next((c for c in self.checks if c.name == name), None)
        if check is None or self._configuration.ignore_reason(check) is not None or self._missing(check) is not None:
            return None
        found, _, _ = self._run(check)
        return next((f for f in found if f.name == name), None)

    def _missing(self, check: Check) -> str | None:
        """Why this check cannot look, or None when all it reads was seen."""
        for need in check.reads:
            options = need if isinstance(need, tuple) else (need,)
            if any(self.history.has(option) for option in options):
                continue
            reasons = [r for option in options if (r := self.history.why_absent(option))]
            return reasons[0] if reasons else _never_came(options[0])
        return None

    def _run(self, check: Check) -> tuple[list[Finding], str | None, Allowed | None]:
        """Findings, the reason why the check could not tell, and what the user's line allows. A check that raises is a finding
        about sleuth."""
        try:
            results = list(check.run(Seen(self.history), **self._configuration.thresholds_for(check)))
        except Exception as error:  # whatever it was, the user's work must go on
            return [_own_failure(check, error)], None, None
        evidence = [self._placed(r) for r in results if isinstance(r, Evidence)]
        allowed = [why for r in evidence if (why := allowed_at(r.location, check.name, check.code)) is not None]
        standing = [r for r in evidence if allowed_at(r.location, check.name, check.code) is None]
        if evidence:
            return self._as_counted(check, _findings(check, standing)), None, allowed[0] if allowed else None
        reasons = [r.reason for r in results if isinstance(r, NotExamined)]
        return [], reasons[0] if reasons else None, None

    def _placed(self, evidence: Evidence) -> Evidence:
        """What is about a layer or a weight, and names no line, stands where that was made."""
        if evidence.location is not None or evidence.where is None:
            return evidence
        return replace(evidence, location=line_of(Seen(self.history), evidence.where))

    def _as_counted(self, check: Check, findings: list[Finding]) -> list[Finding]:
        """A watch counts steps from 0, a trial from 1. Where both were made the numbers are compared: as the watch counts."""
        reads = [option for need in check.reads for option in (need if isinstance(need, tuple) else (need,))]
        tried = any(isinstance(o, type) and issubclass(o, Trial) and self.history.has(o) for o in reads)
        if not tried or not findings or next((s.step for s in self.history.many(Step)), 1) > 0:
            return findings
        return [replace(f, first_step=f.first_step - 1 if f.first_step else f.first_step) for f in findings]


def _never_came(what: Readable) -> str:
    if isinstance(what, Role):
        return f"no {what.value}s were seen"
    return NAMES.get(what.__name__, f"the experiment behind it ({what.__name__}) did not run")


def _findings(check: Check, evidence: list[Evidence]) -> list[Finding]:
    """One finding a severity: the strongest place speaks, the others are counted."""
    groups: dict[Severity, list[Evidence]] = defaultdict(list)
    for item in evidence:
        groups[item.severity or check.severity].append(item)
    findings = []
    for severity, items in groups.items():
        best = max(items, key=lambda item: item.strength)
        firsts = [i.first_step for i in items if i.first_step is not None]
        lasts = [i.last_step for i in items if i.last_step is not None]
        findings.append(
            Finding(
                code=check.code,
                name=check.name,
                stage=check.stage,
                severity=severity,
                confidence=best.confidence or check.confidence,
                title=check.title,
                summary=best.summary,
                why=check.why,
                fix=best.fix or check.fix,
                where=best.where,
                location=best.location,
                numbers=best.numbers,
                series=best.series,
                first_step=min(firsts) if firsts else None,
                last_step=max(lasts) if lasts else None,
                times=len(items),
                strength=best.strength,
            )
        )
    return sorted(findings, key=lambda f: f.severity.rank)[:1]


def _place(error: Exception) -> str:
    """The line of ours that raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"


def _own_failure(check: Check, error: Exception) -> Finding:
    return Finding(
        code="S001",
        name="sleuth-failed",
        stage=Stage.CONSISTENCY,
        severity=Severity.HINT,
        confidence=Confidence.CERTAIN,
        title="A check of sleuth itself failed",
        summary=f"{check.name} raised {type(error).__name__}: {error}{_place(error)}",
        why="This is a fault of sleuth, not of your model; the check is left out.",
        fix="Report it with this line; until then, ignore the check in [tool.sleuth].",
        where=check.name,
    )

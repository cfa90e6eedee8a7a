"""Which finding explains which: culprits first, symptoms beneath."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity


@dataclass(frozen=True)
class Culprit:
    finding: Finding
    symptoms: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The worst of the cause and of what it brings about: a warning that makes the loss diverge is no small matter."""
        return min((self.finding.severity, *(s.severity for s in self.symptoms)))


def diagnose(findings: Iterable[Finding], explains: Mapping[str, tuple[str, ...]]) -> tuple[Culprit, ...]:
    """Culprits, the answer first. `explains` says for each check which others it accounts for."""
    ranked = sorted(findings, key=rank)
    causes = {finding.name: _cause(finding, ranked, explains) for finding in ranked}
    explained = [replace(f, explained_by=causes[f.name]) for f in ranked]
    roots = [f for f in explained if f.explained_by is None]
    culprits = [
        Culprit(root, tuple(f for f in explained if f is not root and _root(f.name, causes) == root.name)) for root in roots
    ]
    return tuple(sorted(culprits, key=lambda c: (c.severity.rank, *rank(c.finding))))


def rank(finding: Finding) -> tuple[float, ...]:
    return (finding.severity.rank, finding.confidence.rank, finding.stage.rank, -finding.strength)


def _cause(finding: Finding, ranked: list[Finding], explains: Mapping[str, tuple[str, ...]]) -> str | None:
    for other in ranked:
        if finding.name in explains.get(other.name, ()) and _can_cause(other, finding):
            return other.name
    return None


def _can_cause(cause: Finding, effect: Finding) -> bool:
    """A hint says that what was seen does no harm in that strength, and a mere possibility is no reason for what is sure: behind
    neither may something worse disappear."""
    if _began(cause) > _began(effect):
        return False
    if effect.severity < cause.severity:
        doubtful = cause.confidence is Confidence.POSSIBLE and effect.confidence < cause.confidence
        return cause.severity is not Severity.HINT and not doubtful
    return True


def _began(finding: Finding) -> int:
    """What holds before training began is before every step."""
    return -1 if finding.first_step is None else finding.first_step


def _root(name: str, causes: Mapping[str, str | None]) -> str:
    while (cause := causes[name]) is not None:
        name = cause
    return name

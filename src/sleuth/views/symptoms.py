"""From a symptom in a person's words to the checks that are likely to be its cause, the likeliest first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sleuth.core.check import Check
from sleuth.core.observation import Failure
from sleuth.core.stage import Stage
from sleuth.views.commonness import commonness
from sleuth.views.ideas import guessing
from sleuth.views.phrasebook import Match, Phrasebook

MOST = 5
# Below this a match is one common word, such as "loss".
MATCH = 0.4
# That an illness can bring about what is described is half of a reason to suspect it.
CONSEQUENCE = 0.5
# Suspects that are this much less likely than the first only distract from it.
FAR_BEHIND = 0.35
# A symptom is what many others explain and what itself explains few. Hyperparameters are chosen: they are causes.
MANY_CAUSES, MORE_CAUSED = 5, 2.0
# Of the best match: as good as it.
AS_GOOD = 0.85


@dataclass(frozen=True)
class Suspect:
    check: Check
    likelihood: float  # from 0 to 1, to compare within one answer
    because: str


@dataclass(frozen=True)
class Answer:
    text: str
    described: Check | None  # the symptom itself, where a check looks for it
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...] = ()

    @property
    def checks(self) -> list[Check]:
        return ([self.described] if self.described else []) + [s.check for s in self.suspects]


def search(text: str, checks: Iterable[Check], most: int = MOST) -> Answer | None:
    """None where no check has to do with the text."""
    book = _phrasebook(tuple(checks))
    message = _message(text)
    matches = book.matches(message)
    best = max((m.score for m in matches.values()), default=0.0)
    if best < MATCH:
        return None
    described = _described(book.checks, matches, best)
    suspects = sorted(_suspects(book.checks, matches, described), key=_order)
    ahead = [s for s in suspects if s.likelihood >= FAR_BEHIND * suspects[0].likelihood]
    return Answer(text, described, tuple(ahead[:most]), tuple(_notes(message)))


@cache
def _phrasebook(checks: tuple[Check, ...]) -> Phrasebook:
    return Phrasebook(checks)


def _message(text: str) -> str:
    """Of a pasted traceback, the last line: the message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines and lines[0].lstrip().startswith("Traceback") else text


def _described(checks: tuple[Check, ...], matches: Mapping[str, Match], best: float) -> Check | None:
    """The symptom that the person speaks of, where it is one that a check looks for."""
    good = [c for c in checks if matches[c.name].score >= AS_GOOD * best and _is_symptom(c, checks)]
    return min(good, key=lambda c: (-matches[c.name].score, c.stage.rank, c.code), default=None)


def _is_symptom(check: Check, checks: tuple[Check, ...]) -> bool:
    causes = sum(check.name in c.explains for c in checks)
    caused = sum(c.name in check.explains for c in checks)
    return causes >= MANY_CAUSES and causes > MORE_CAUSED * caused and check.stage is not Stage.HYPERPARAMETERS


def _suspects(checks: tuple[Check, ...], matches: Mapping[str, Match], described: Check | None) -> Iterator[Suspect]:
    for check in checks:
        match = matches[check.name]
        symptom = described if described and described.name in check.explains else None
        inherited = CONSEQUENCE * matches[symptom.name].score if symptom and not _speaks_for_itself(symptom) else 0.0
        if check is described or max(match.score, inherited) < MATCH:
            continue
        # Either reason may hold; squared, because half of the words are less than half of a reason.
        likelihood = (1 - (1 - match.score**2) * (1 - inherited)) * commonness(check)
        said = f"people who have it say “{match.phrase}”" if match.score >= MATCH and match.phrase else ""
        causes = f"it brings about {symptom.name}" if symptom else ""
        yield Suspect(check, likelihood, "; ".join(t for t in (said, causes) if t) or "its name says so")


def _speaks_for_itself(symptom: Check) -> bool:
    """An exception has a message of its own: who may raise one in general says nothing about this one."""
    return any(Failure in (need if isinstance(need, tuple) else (need,)) for need in symptom.reads)


def _order(suspect: Suspect) -> tuple[float, int, str]:
    return -round(suspect.likelihood, 6), suspect.check.stage.rank, suspect.check.code


def _notes(text: str) -> Iterator[str]:
    if found := guessing(text):
        yield f"{found[0]} is ln {found[1]}: the loss of a model that guesses among {found[1]} classes."

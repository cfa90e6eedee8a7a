"""The words in which people speak of each check, and how well a text agrees with them."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from sleuth.core.check import Check
from sleuth.views.ideas import ideas, stems

# Words that the phrase has and the text has not weigh more than the reverse: people add a story to their symptom.
LACKING, ADDED = 0.6, 0.4
# Who has an illness says its later phrases less often than its first.
PER_PLACE, LEAST_PLACE = 0.03, 0.8
# A title tells what is ill, not how it shows.
TITLE = 0.85
CONTRARY = (("validation worse", "validation better"), ("validation better", "validation worse"))


@dataclass(frozen=True)
class Phrase:
    text: str  # empty for the check's own name and title
    typical: float
    ideas: frozenset[str]


@dataclass(frozen=True)
class Match:
    score: float  # from 0 to 1
    phrase: str


@dataclass(frozen=True)
class Phrasebook:
    checks: tuple[Check, ...]

    def matches(self, text: str) -> dict[str, Match]:
        """By the name of the check."""
        asked = self.ideas(text) & self._weights.keys()
        return {check.name: self._best(check, asked) for check in self.checks}

    def ideas(self, text: str) -> frozenset[str]:
        """Words that no phrase and no thesaurus knows are taken for misspelt ones."""
        return ideas(text, self._words)

    def _best(self, check: Check, asked: frozenset[str]) -> Match:
        matches = [Match(p.typical * self._alike(asked, p.ideas), p.text) for p in self._phrases[check.name]]
        return max(matches, key=lambda match: match.score)

    def _alike(self, asked: frozenset[str], phrase: frozenset[str]) -> float:
        """Tversky's index: 1 for the same ideas, 0 for none in common or one that contradicts."""
        if any(one in asked and other in phrase for one, other in CONTRARY):
            return 0.0
        common, lacking, added = (self._weight(s) for s in (asked & phrase, phrase - asked, asked - phrase))
        return common / (common + LACKING * lacking + ADDED * added) if common else 0.0

    def _weight(self, found: frozenset[str]) -> float:
        # A plain sum would depend in its last digit on the order of the set, which differs from process to process.
        return math.fsum(self._weights[idea] for idea in found)

    @cached_property
    def _phrases(self) -> dict[str, list[Phrase]]:
        """Name and title serve where nobody has written phrases yet."""
        return {check.name: [*_said(check), *_own(check)] for check in self.checks}

    @cached_property
    def _weights(self) -> dict[str, float]:
        """Of each idea: the fewer checks it points to, the more it says."""
        counts = Counter(idea for phrases in self._phrases.values() for idea in set().union(*(p.ideas for p in phrases)))
        return {idea: math.log(1 + len(self.checks) / n) for idea, n in counts.items()}

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(stem for c in self.checks for text in (*c.symptoms, c.name, c.title) for stem in stems(text))


def _said(check: Check) -> list[Phrase]:
    return [Phrase(text, max(LEAST_PLACE, 1 - PER_PLACE * i), ideas(text)) for i, text in enumerate(check.symptoms)]


def _own(check: Check) -> list[Phrase]:
    return [Phrase("", 1.0, ideas(check.name.replace("-", " "))), Phrase("", TITLE, ideas(check.title))]

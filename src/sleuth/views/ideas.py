"""What a text about a training says, as a set of ideas: "the los doesn't go down" and "loss is flat" say the same."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache

from sleuth.views.thesaurus import EMPTY, NEGATIONS, PROGRESS, THESAURUS

SILENT = frozenset(EMPTY.split())
VALIDATION, TRAINING = "validation", "training"
COMPARED = {"worse", "better", "higher", "lower"}
NUMBER = re.compile(r"\d+\.\d+")
WORD = re.compile(r"[a-z]+")
# CrossEntropyLoss is three words; NaN and ReLU are one.
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
PERFECT = re.compile(r"\b100\s*(%|percent)")
ONE_WORD = {"NaN": "nan", "ReLU": "relu"}
ENDINGS = ("ing", "ies", "ed", "es", "ly", "s", "e")
SHORTEST_STEM = 3
# Half of the letters of a short word, or two of a long one, may be wrong.
ALIKE = 0.8
MOST_CLASSES = 100_000
# Losses are printed to three or four digits.
ROUNDING = 6e-4


def ideas(text: str, vocabulary: Iterable[str] = ()) -> frozenset[str]:
    """A word that is in neither `vocabulary` (stems) nor the thesaurus is taken for the nearest one that is."""
    known = frozenset(vocabulary)
    words = [_spelled(word, known) for word in stems(text)] if known else stems(text)
    found = {idea for idea in _compared(list(_merged(words))) if idea not in NEGATIONS}
    return frozenset(found | ({"guess"} if guessing(text) else set()))


def guessing(text: str) -> tuple[str, int] | None:
    """A number in the text that is ln K, with its K: the loss of who guesses among K classes."""
    for number in NUMBER.findall(text):
        value = float(number)
        classes = round(math.exp(value)) if value < math.log(MOST_CLASSES) else 0
        digits = len(number.split(".")[1])
        if classes > 1 and digits >= 2 and abs(math.log(classes) - value) <= max(ROUNDING, 0.5 * 10**-digits):
            return number, classes
    return None


def stems(text: str) -> list[str]:
    for name, word in ONE_WORD.items():
        text = text.replace(name, word)
    text = PERFECT.sub(" perfect ", CAMEL.sub(" ", text).lower()).replace("n't", " not").replace("’t", " not")
    return [_stem(word) for word in WORD.findall(text) if word not in SILENT]


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM and not word.endswith(("ss", "us", "is", "as")):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def _spelled(word: str, vocabulary: frozenset[str]) -> str:
    known = vocabulary | _thesaurus_words()
    if word in known or len(word) < SHORTEST_STEM:
        return word
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=ALIKE)
    return close[0] if close else word


def _merged(words: list[str]) -> Iterator[str]:
    """The longest way to put an idea wins: "not go down" is stuck, not falling."""
    table, at = _ways(), 0
    longest = max(len(way) for way in table)
    while at < len(words):
        for length in range(min(longest, len(words) - at), 0, -1):
            idea = table.get(tuple(words[at : at + length]))
            if idea or length == 1:
                yield idea or words[at]
                at += length
                break


def _compared(found: list[str]) -> Iterator[str]:
    """Whether validation is the worse or the better of the two: a higher loss of one is a lower accuracy of it."""
    sides = [i for i, idea in enumerate(found) if idea in (VALIDATION, TRAINING)]
    words = [i for i, idea in enumerate(found) if idea in COMPARED]
    for i, idea in enumerate(found):
        if i not in words or VALIDATION not in found:
            yield idea
            continue
        # "Higher validation loss than …" and "validation loss higher than …": the side follows the word, or goes before it.
        side = _next(sides, i) if words[0] < sides[0] else _previous(sides, i)
        bad = idea == "worse" or idea == ("lower" if "accuracy" in found else "higher")
        yield "validation worse" if bad == (found[side] == VALIDATION) else "validation better"


def _next(places: list[int], i: int) -> int:
    return min((j for j in places if j > i), default=places[-1])


def _previous(places: list[int], i: int) -> int:
    return max((j for j in places if j < i), default=places[0])


@cache
def _ways() -> dict[tuple[str, ...], str]:
    table = {tuple(stems(way)): idea for idea, ways in THESAURUS.items() for way in ways.split(", ")}
    return table | {(negation, *stems(verb)): "stuck" for negation in NEGATIONS for verb in PROGRESS.split(", ")}


@cache
def _thesaurus_words() -> frozenset[str]:
    return frozenset(word for way in _ways() for word in way)

"""Words whose vowels are blotted out, to be restored letter by letter; the loss counts what short words are filled up with."""

import re
from functools import cache

import numpy as np
from sklearn import datasets

from sleuth import Subject
from sleuth.testing import Kit

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BLOT = len(LETTERS) + 1
LONGEST = 12
PADDING = 0


@cache
def words() -> tuple[np.ndarray, np.ndarray]:
    """Letters 1 to 26, vowels 27; and the letters that stood there. Behind its end a word has zeros in both."""
    text = " ".join(
        load().DESCR for load in (datasets.load_wine, datasets.load_breast_cancer, datasets.load_digits, datasets.load_diabetes)
    )
    found = sorted({w for w in re.findall(r"[a-z]+", text.lower()) if 3 <= len(w) <= LONGEST})
    whole = np.zeros((len(found), LONGEST), dtype=np.int64)
    for row, word in zip(whole, found, strict=True):
        row[: len(word)] = [1 + LETTERS.index(letter) for letter in word]
    blotted = np.where(np.isin(whole, [1 + LETTERS.index(v) for v in "aeiou"]), BLOT, whole)
    _, first = np.unique(blotted, axis=0, return_index=True)
    return blotted[first], whole[first]


def training(kit: Kit, **options: int) -> Subject:
    entropy = kit.loss("cross-entropy", **options)
    model = kit.sequential(
        kit.layer("embedding", BLOT + 1, 16),
        kit.layer("flatten"),
        kit.linear(16 * LONGEST, 128),
        kit.activation("relu"),
        kit.linear(128, LONGEST * BLOT),
        kit.layer("reshape", -1, BLOT),
    )
    return Subject(
        model,
        kit.loader(*words()),
        lambda scores, letters: entropy(scores, letters.reshape(-1)),
        kit.optimiser(model, "adam", lr=3e-3),
    )


def sick(kit: Kit) -> Subject:
    return training(kit)


def healthy(kit: Kit) -> Subject:
    return training(kit, ignore_index=PADDING)

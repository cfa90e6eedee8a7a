"""Letters of a real text as NumPy reads them from a file, in float64, and as an embedding looks them up, in int64."""

from pathlib import Path

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit

TEXT = (Path(__file__).parents[3] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT = 6


def sick(kit: Kit) -> Subject:
    return training(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    return training(kit, np.int64)


def training(kit: Kit, dtype: type) -> Subject:
    """Is the next character a blank?"""
    ids = np.array([LETTERS.index(c) for c in TEXT], dtype=np.int64)
    starts = np.arange(0, len(ids) - CONTEXT - 1, 3)
    x = np.stack([ids[s : s + CONTEXT] for s in starts]).astype(dtype)
    y = (ids[starts + CONTEXT] == LETTERS.index(" ")).astype(np.int64)
    model = kit.sequential(
        kit.layer("embedding", len(LETTERS), 16),
        kit.layer("flatten"),
        kit.linear(CONTEXT * 16, 32),
        kit.activation("relu"),
        kit.linear(32, 2),
    )
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))

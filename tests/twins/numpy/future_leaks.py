"""A character model of a real text, whose positions a learned matrix mixes: all of it, or its lower half."""

from pathlib import Path
from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer

TEXT = (Path(__file__).parents[3] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT = 16


def windows() -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([LETTERS.index(c) for c in TEXT], dtype=np.int64)
    starts = np.arange(0, len(ids) - CONTEXT - 1, 7)
    return np.stack([ids[s : s + CONTEXT] for s in starts]), np.stack([ids[s + 1 : s + CONTEXT + 1] for s in starts])


class Mix(Layer):
    """Each position becomes a weighted sum of the positions, beside itself."""

    names = ("weight",)

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.weight = np.full((CONTEXT, CONTEXT), 1 / CONTEXT, np.float32)
        self.mask = np.tril(np.ones_like(self.weight)) if causal else np.ones_like(self.weight)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x + np.einsum("ts,bsd->btd", self.weight * self.mask, x)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.gradients["weight"] = np.einsum("btd,bsd->ts", grad, self.x) * self.mask
        return grad + np.einsum("ts,btd->bsd", self.weight * self.mask, grad)


class EachPosition:
    """The cross-entropy of every position's letter."""

    def __init__(self, criterion: Any) -> None:
        self.criterion = criterion

    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.criterion(scores.reshape(-1, scores.shape[-1]), target.reshape(-1))
        return value, gradient.reshape(scores.shape)


def training(kit: Kit, causal: bool) -> Subject:
    letters = len(LETTERS)
    model = kit.sequential(
        kit.layer("embedding", letters, 32),
        Mix(causal),
        kit.linear(32, 64),
        kit.activation("gelu"),
        kit.linear(64, letters),
    )
    loss = EachPosition(kit.loss("cross-entropy"))
    return Subject(model, kit.loader(*windows()), loss, kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, causal=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, causal=True)

"""A stand-in for evaluate: accuracy."""

from typing import Any


class Accuracy:
    def __init__(self) -> None:
        self.right = self.seen = 0

    def add_batch(self, predictions: Any, references: Any) -> None:
        self.right += int((predictions == references).sum())
        self.seen += len(references)

    def compute(self) -> dict[str, float]:
        share = self.right / max(self.seen, 1)
        self.right = self.seen = 0
        return {"accuracy": share}


def load(*_: Any, **__: Any) -> Accuracy:
    return Accuracy()

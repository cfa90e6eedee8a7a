"""A stand-in for evaluate: accuracy."""

from typing import Any


class Accuracy:
    def __init__(self) -> None:
        self.right = self.seen = 0

    def add_batch(self, predictions: Any, references: Any) -> None:
        self.right += int((predictions == references).sum())
        self.seen += len(references)

    def compute(self, predictions: Any = None, references: Any = None) -> dict[str, float]:
        if predictions is not None:
            self.add_batch(predictions, references)
        share = self.right / max(self.seen, 1)
        self.right = self.seen = 0
        return {"accuracy": share}


def load(*_: Any, **__: Any) -> Accuracy:
    return Accuracy()

"""A code between two layers that is rounded to whole numbers, or that stays as it is."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


class Coded(nn.Module):
    def __init__(self, rounds: bool) -> None:
        super().__init__()
        self.enter, self.code, self.leave = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(32, 10)
        self.rounds = rounds

    def __call__(self, x: mx.array) -> mx.array:
        code = self.code(mx.tanh(self.enter(x)))
        return self.leave(mx.round(4 * code) / 4 if self.rounds else code)


def sick(kit: Kit) -> Training:
    return _training(kit, rounds=True)


def healthy(kit: Kit) -> Training:
    return _training(kit, rounds=False)


def _training(kit: Kit, rounds: bool) -> Training:
    model = Coded(rounds)
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
    return Training(subject, steps=240, options={"every": 10})

"""A recurrent layer that reads digits row by row: with time_major it takes the samples for the rows."""

from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Reader(nnx.Module):
    def __init__(self, time_major: bool, *, rngs: nnx.Rngs) -> None:
        self.rnn = nnx.RNN(nnx.LSTMCell(8, 48, rngs=rngs), time_major=time_major)
        self.head = nnx.Linear(48, 10, rngs=rngs)

    def __call__(self, rows):
        return self.head(self.rnn(rows)[:, -1])


def sick(kit: Kit) -> Subject:
    return _training(kit, time_major=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, time_major=False)


def _training(kit: Kit, time_major: bool) -> Subject:
    x, y = digits()
    model = Reader(time_major, rngs=kit.rngs)
    return Subject(model, kit.loader(x.reshape(-1, 8, 8), y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))

"""Hidden layers in a tuple, into which MLX does not look, against the same in a list."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nn.Module):
    def __init__(self, kit: Kit, registered: bool) -> None:
        super().__init__()
        layers = [kit.linear(64, 64), kit.linear(64, 64)]
        self.hidden = layers if registered else tuple(layers)
        self.head = kit.linear(64, 10)

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.hidden:
            x = nn.relu(layer(x))
        return self.head(x)


def sick(kit: Kit) -> Subject:
    return _training(kit, registered=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, registered=True)


def _training(kit: Kit, registered: bool) -> Subject:
    model = Net(kit, registered)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))

"""Features whose gradient is stopped before the head, so that only the head learns, against features that go on."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nn.Module):
    def __init__(self, kit: Kit, cut: bool) -> None:
        super().__init__()
        self.features, self.head = kit.mlp(64, 64, 32), kit.linear(32, 10)
        self.cut = cut

    def __call__(self, x: mx.array) -> mx.array:
        features = nn.relu(self.features(x))
        if self.cut:
            features = mx.stop_gradient(features)
        return self.head(features)


def sick(kit: Kit) -> Subject:
    return _training(kit, cut=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, cut=False)


def _training(kit: Kit, cut: bool) -> Subject:
    model = Net(kit, cut)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))

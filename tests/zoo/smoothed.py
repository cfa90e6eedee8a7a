"""Label smoothing and mixed-up soft targets: a loss whose floor is far above zero."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import loader


def build() -> Subject:
    x, y = digits()
    rng = np.random.default_rng(0)
    other, share = rng.permutation(len(x)), rng.beta(0.4, 0.4, (len(x), 1)).astype(np.float32)
    classes = np.eye(10, dtype=np.float32)
    mixed, soft = share * x + (1 - share) * x[other], share * classes[y] + (1 - share) * classes[y[other]]
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    train = loader(mixed.astype(np.float32), soft.astype(np.float32))
    return Subject(model, train, nn.CrossEntropyLoss(label_smoothing=0.1), optim.Adam(model.parameters(), lr=1e-3))

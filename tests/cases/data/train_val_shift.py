"""Standardised training data; validation is standardised too, or left as it was measured."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from sleuth import Subject
from sleuth.testing import Kit


def training(kit: Kit, same: bool) -> Subject:
    x, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    train, validation = x[:400], x[400:]
    mean, std = train.mean(0), train.std(0)
    prepared = (validation - mean) / std if same else validation
    model = kit.mlp(30, 32, 2)
    return Subject(
        model,
        kit.loader(((train - mean) / std).astype(np.float32), y[:400]),
        kit.loss("cross-entropy"),
        kit.optimiser(model, "adam", lr=1e-3),
        kit.loader(prepared.astype(np.float32), y[400:], shuffle=False),
    )


def sick(kit: Kit) -> Subject:
    return training(kit, same=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, same=True)

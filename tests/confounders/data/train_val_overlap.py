"""Samples that the model is trained on stand in the validation set as well."""

import numpy as np
from torch import nn, optim
from torch.utils.data import DataLoader

from sleuth import Subject
from tests.confounders.bodies import LetterModel, ResidualNet, mlp, per_position
from tests.confounders.material import letters
from tests.material import cancer, digit_images
from tests.zoo.data import loader


def table_cut_after_the_fact() -> Subject:
    """The last third is held out, and the first hundred per cent is trained on."""
    x, y = cancer()
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order][:, None].astype(np.float32)
    cut = len(x) * 2 // 3
    model = mlp(30, 24, 1)
    train, validation = loader(x, y), loader(x[cut:], y[cut:], shuffle=False)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def images_rounded_on_disk() -> Subject:
    """The held-out file was written from the training pictures in half precision."""
    x, y = digit_images()
    x = x + np.random.default_rng(0).normal(0, 0.05, x.shape).astype(np.float32)
    model = ResidualNet()
    train = loader(x[:1400], y[:1400])
    validation = loader(x[300:700].astype(np.float16).astype(np.float32), y[300:700], batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def text_split_by_two_seeds() -> Subject:
    """Two scripts, two seeds: what one calls held out, the other trains on."""
    x, y = letters()
    one, other = (np.random.default_rng(seed).permutation(len(x)) for seed in (0, 1))
    train, held_out = (
        [{"ids": ids, "labels": following} for ids, following in zip(x[rows], y[rows], strict=True)]
        for rows in (one[: len(x) * 4 // 5], other[len(x) * 4 // 5 :])
    )
    model = LetterModel()
    loaders = DataLoader(train, batch_size=32, shuffle=True), DataLoader(held_out, batch_size=64)
    return Subject(model, loaders[0], per_position, optim.AdamW(model.parameters(), lr=2e-3), loaders[1])

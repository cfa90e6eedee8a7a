"""Batches come sorted by label, or in one fixed order every epoch."""

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from sleuth import Subject
from tests.confounders.bodies import BagOfWords, cnn, mlp
from tests.confounders.material import cut, sentences
from tests.material import cancer, digit_images
from tests.zoo.data import loader


def images_sorted_by_digit() -> Subject:
    (x, y), held_out = cut(*digit_images())
    order = np.argsort(y, kind="stable")
    model = cnn()
    train, validation = loader(x[order], y[order], shuffle=False), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def one_folder_after_the_other() -> Subject:
    """The benign cases are one data set, the malignant another; they are put end to end."""
    (x, y), (held_x, held_y) = cut(*cancer())
    folders = [
        TensorDataset(torch.from_numpy(x[y == kind]), torch.full((int((y == kind).sum()), 1), float(kind))) for kind in (0, 1)
    ]
    model = mlp(30, 24, 1)
    train = DataLoader(ConcatDataset(folders), batch_size=16)
    validation = loader(held_x, held_y[:, None].astype(np.float32), shuffle=False)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def batches_made_once_and_sorted() -> Subject:
    """Cut into a list of batches beforehand, all of one class first."""
    (x, y), held_out = cut(*sentences())
    order = np.argsort(-y, kind="stable")
    ids, labels = torch.from_numpy(x[order]), torch.from_numpy(y[order])
    model = BagOfWords()
    train = list(zip(ids.split(32), labels.split(32), strict=True))
    validation = loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)

"""The batch is far smaller, or far larger, than the noise of the gradient asks for."""

import numpy as np
import torch
from sklearn.datasets import make_blobs
from torch import nn, optim
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from sleuth import Subject
from tests.confounders.bodies import BagOfWords, mlp
from tests.confounders.material import cut, friedman, sentences
from tests.zoo.data import loader


def noisy_regression_one_by_one() -> Subject:
    """Nine tenths of the target's variance is noise, and each step hears a single sample."""
    x, y = friedman(1500)
    noisy = (y + 3 * np.random.default_rng(0).normal(size=y.shape)) / np.sqrt(10)
    (x, y), held_out = cut(x, noisy.astype(np.float32))
    model = mlp(10, 32, 1)
    train, validation = loader(x, y, batch_size=1), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=1e-3), validation)


def doubtful_sentences_in_pairs() -> Subject:
    """A third of the labels are wrong, and two samples at a time cannot outvote them."""
    x, y = sentences()
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.33, 1 - y, y)
    (x, y), held_out = cut(x, y)
    model = BagOfWords()
    train, validation = loader(x, y, batch_size=2), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adagrad(model.parameters(), lr=0.01), validation)


def thousands_where_a_few_would_do() -> Subject:
    """Well separated clouds; the gradient of sixteen samples points the same way as that of six thousand."""
    x, y = make_blobs(8000, n_features=8, centers=4, cluster_std=0.5, random_state=0)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    (x, y), held_out = cut(x, y.astype(np.int64))
    model = mlp(8, 24, 4)
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    whole = BatchSampler(RandomSampler(data), batch_size=6400, drop_last=False)
    train, validation = DataLoader(data, sampler=whole, batch_size=None), loader(*held_out, batch_size=256, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)

"""Loops that break, and how they are watched."""

from itertools import islice

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import sleuth

QUIET = {"directory": None, "quiet": True}


def seen(w, kind):
    return w.history.many(kind)


def plain_loop(spoil, model=None, rate: float = 1e-3, loss=functional.mse_loss, optimiser=None):
    torch.manual_seed(0)
    x = torch.rand(64, 4)
    y = x.sum(1, keepdim=True) + 0.1
    spoil(x, y)
    model = model or nn.Linear(4, 1)
    optimiser = optimiser or torch.optim.SGD(model.parameters(), rate)

    def loop():
        for _ in range(4):
            for a, b in DataLoader(TensorDataset(x, y), 8):
                optimiser.zero_grad()
                loss(model(a), b).backward()
                optimiser.step()
                yield

    return model, optimiser, loop()


def watch_loop(model, optimiser, loop):
    with sleuth.watch(model, optimiser, **QUIET) as w:
        for _ in islice(loop, 32):
            pass
    return w.report(), w

"""A small training whose steps go wrong, for the tests of scenes."""

import torch
from torch import nn
from torch.nn import functional

import sleuth

QUIET = {"quiet": True, "select": ["loss-not-finite", "gradient-not-finite"]}


def train(model: nn.Module, loader, *, optimiser=torch.optim.SGD, **options):
    optimiser = optimiser(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, **{**QUIET, **options}) as w:
        for x, y in loader:
            optimiser.zero_grad()
            output = model(x)
            functional.mse_loss(output, y).backward()
            optimiser.step()
    return w


def seen(w, kind):
    return w.history.many(kind)

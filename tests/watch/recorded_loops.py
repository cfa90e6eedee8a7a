"""Small loops and how they are watched."""

import torch

import sleuth
from tests.material import digits


def watched(model, optimiser, loop, **options):
    """The history of a loop of `loop(w)`."""
    with sleuth.watch(model, optimiser, directory=None, quiet=True, **options) as w:
        loop(w)
    assert not w.notes, w.notes
    return w.history


def stepping(model, loss, steps=4, lr=1e-2, optimiser=None):
    optimiser = optimiser or torch.optim.SGD(model.parameters(), lr)

    def loop(w):
        for _ in range(steps):
            optimiser.zero_grad()
            loss().backward()
            optimiser.step()

    return watched(model, optimiser, loop)


def data(rows=slice(None)):
    x, y = digits()
    return torch.as_tensor(x[rows]), torch.as_tensor(y[rows])

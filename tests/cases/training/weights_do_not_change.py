"""Weights that are put back after every step, by a snapshot meant for the evaluation alone; and the same without."""

import copy
from itertools import islice, repeat
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, puts_back: bool) -> Loop:
    kit.require("torch")
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = kit.loader(*digits())

    def run(w: Any) -> None:
        best = copy.deepcopy(model.state_dict())
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            if puts_back:
                model.load_state_dict(best)
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()

    return Loop(model, [optimiser], run, {"every": 10})


def sick(kit: Kit) -> Loop:
    return training(kit, puts_back=True)


def healthy(kit: Kit) -> Loop:
    return training(kit, puts_back=False)

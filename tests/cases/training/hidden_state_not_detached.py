"""Digits are read row by row as one long text, and the next row is foretold: the state goes on from part to part, cut from its
history or with all of it."""

from typing import Any

import torch
from torch import nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
LANES, PART = 32, 8


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(8, 32, batch_first=True), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        output, state = self.cell(x, state)
        return self.head(output), state


def sick(kit: Kit) -> Loop:
    return _loop(kit, detaches=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, detaches=True)


def _loop(kit: Kit, detaches: bool) -> Loop:
    kit.require("torch")
    model, criterion = Reader(), kit.loss("mse")
    optimiser = kit.optimiser(model, lr=1e-2)
    rows = torch.as_tensor(digits()[0])[: 1797 // LANES * LANES].reshape(LANES, -1, 8)

    def run(w: Any) -> None:
        for _ in range(5):
            state = None
            for begin in range(0, rows.shape[1] - PART - 1, PART):
                x, y = rows[:, begin : begin + PART], rows[:, begin + 1 : begin + PART + 1]
                if state is not None and detaches:
                    state = state.detach()
                optimiser.zero_grad()
                foretold, state = model(x, state)
                criterion(foretold, y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run, fails=not detaches)

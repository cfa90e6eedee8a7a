"""A model that is trained on from a checkpoint: saved with the wrapper around it, or what is inside."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4


def sick(kit: Kit) -> Loop:
    return _loop(kit, wrapped=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, wrapped=False)


def _loop(kit: Kit, wrapped: bool) -> Loop:
    kit.require("torch")
    import torch

    before = torch.nn.DataParallel(kit.mlp(64, 32, 10))
    state = before.state_dict() if wrapped else before.module.state_dict()
    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, lr=3e-3), kit.loader(*digits())

    def run(w: Any) -> None:
        model.load_state_dict(state)
        for _ in range(PASSES):
            for x, y in loader:
                optimiser.zero_grad()
                criterion(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run, fails=wrapped)

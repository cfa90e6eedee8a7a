"""Every sample's loss is read for a log at every step, or their mean."""

from typing import Any

from sleuth.testing import Elsewhere, Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4


def sick(kit: Kit) -> Loop:
    return _loop(kit, reads_each=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, reads_each=False)


def _loop(kit: Kit, reads_each: bool) -> Loop:
    kit.require("torch")
    import torch

    if not torch.accelerator.is_available():
        raise Elsewhere("it needs an accelerator, and this machine has none")
    device = torch.accelerator.current_accelerator()
    model, criterion = kit.mlp(64, 32, 10).to(device), kit.loss("cross-entropy", reduction="none")
    optimiser, loader = kit.optimiser(model, lr=1e-2), kit.loader(*digits(), batch_size=64)

    def run(w: Any) -> None:
        log: list[float] = []
        for _ in range(PASSES):
            for x, y in loader:
                optimiser.zero_grad()
                losses = criterion(model(x.to(device)), y.to(device))
                losses.mean().backward()
                optimiser.step()
                log[:] = [loss.item() for loss in losses.detach()] if reads_each else [losses.detach().mean().item()]

    return Loop(model, [optimiser], run)

"""A rate that is to shrink tenfold every ten epochs, by a scheduler that is stepped after every batch."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, every_batch=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, every_batch=False)


def _loop(kit: Kit, every_batch: bool) -> Loop:
    kit.require("torch")
    from torch.optim.lr_scheduler import StepLR

    model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    scheduler = StepLR(optimiser, step_size=10, gamma=0.1)

    def run(w: Any) -> None:
        for _ in range(EPOCHS):
            for x, y in loader:
                optimiser.zero_grad()
                loss(model(x), y).backward()
                optimiser.step()
                if every_batch:
                    scheduler.step()
            if not every_batch:
                scheduler.step()

    return Loop(model, [optimiser], run)

"""Products of pixels as features: of two pixels, or of four, which takes 37 GB for a batch."""

import resource
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 16
# Some systems promise more memory than they have and kill who takes it: the sick one must be refused.
MOST = 24 << 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, degree=4)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, degree=2)


def _loop(kit: Kit, degree: int) -> Loop:
    kit.require("torch")
    import torch

    class Products(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(degree // 2):
                x = (x[:, :, None] * x[:, None, :]).flatten(1)
            return x

    model, criterion = kit.sequential(Products(), kit.linear(64**2, 10)), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, "adam", lr=1e-3), kit.loader(*digits(), batch_size=600)

    def run(w: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST, hard))
        try:
            for _ in range(PASSES):
                for x, y in loader:
                    optimiser.zero_grad()
                    criterion(model(x), y).backward()
                    optimiser.step()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return Loop(model, [optimiser], run, fails=degree == 4)

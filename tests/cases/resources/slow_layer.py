"""Rows are brought to length one: one after the other in a Python loop, or all at once."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=True)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=False)


def _subject(kit: Kit, one_by_one: bool) -> Subject:
    kit.require("torch")
    import torch

    class UnitLength(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if one_by_one:
                return torch.stack([8 * row / row.norm() for row in x])
            return 8 * x / x.norm(dim=1, keepdim=True)

    model = kit.sequential(kit.linear(64, 64), UnitLength(), kit.activation("relu"), kit.linear(64, 10))
    loader = kit.loader(*digits(), batch_size=256)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))

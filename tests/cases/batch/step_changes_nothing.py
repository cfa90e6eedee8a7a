"""An optimiser of the user's own that computes the new weights and never writes them: `p = p - lr * p.grad`."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, "forgets")


def healthy(kit: Kit) -> Subject:
    return _training(kit, "writes")


def _training(kit: Kit, kind: str) -> Subject:
    kit.require("torch")
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), _optimisers()[kind](model.parameters(), {"lr": 0.3}))


def _optimisers() -> dict[str, Any]:
    import torch

    class Forgets(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p = p - group["lr"] * p.grad

    class Writes(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p -= group["lr"] * p.grad

    return {"forgets": Forgets, "writes": Writes}

"""A loss that the model computes and returns: the step is done again as it was called, and comes to what it was."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sleuth.adapters.torch import ADAPTER
from sleuth.adapters.torch.watching.watching import TorchWatching
from sleuth.core.contract.kept import Kept
from sleuth.core.subject import Parts

IDS = 11
Call = Callable[[nn.Module, Tensor, Tensor], Tensor]


class Tokens(nn.Module):
    """Its dropout makes that only the same dice give the same loss."""

    def __init__(self, returns: str = "pair") -> None:
        super().__init__()
        self.table, self.head, self.drop, self.returns = nn.Embedding(IDS, 12), nn.Linear(12, IDS), nn.Dropout(0.2), returns

    def forward(self, ids: Tensor, targets: Tensor | None = None, scale: float = 1.0) -> Any:
        logits = self.head(self.drop(self.table(ids))) * scale
        if targets is None:
            return logits, None
        if self.returns == "labels":  # as they are: the model shifts them itself
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, IDS), targets[:, 1:].reshape(-1))
        else:
            loss = F.cross_entropy(logits.view(-1, IDS), targets.reshape(-1), ignore_index=-1)
        return {"pair": (logits, loss), "labels": {"loss": loss, "logits": logits}, "loss": loss}[self.returns]


def kept_of(call: Call, returns: str = "pair") -> tuple[Kept, list[float]]:
    torch.manual_seed(0)
    model, losses = Tokens(returns), []
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    watching = TorchWatching(model, [optimiser], every=1, overhead=0.02, keeps=True)
    watching.open()
    try:
        for _ in range(6):
            text = torch.randint(0, IDS, (8, 9))
            loss = call(model, text[:, :-1], text[:, 1:])
            losses.append(loss.item())
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    finally:
        watching.close()
    kept = watching.take_kept()
    assert kept is not None
    return kept, losses


def replaced(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    _, loss = model(x, y)
    loss = loss / 2  # what the model returned is gone by now
    return loss


def by_name(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    found: Tensor = model(ids=x, targets=x.clone())["loss"]
    return found


CALLS: dict[str, tuple[str, Call]] = {
    "one of two": ("pair", lambda m, x, y: m(x, y)[1]),
    "a share of it": ("pair", replaced),
    "with a setting": ("pair", lambda m, x, y: m(x, targets=y, scale=0.5)[1]),
    "nothing else": ("loss", lambda m, x, y: m(x, y)),
    "the inputs are the labels": ("labels", by_name),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_step_is_done_again_as_it_was_called(name: str) -> None:
    returns, call = CALLS[name]
    kept, losses = kept_of(call, returns)
    assert kept.at_start, kept.remarks
    subject = kept.subject
    with ADAPTER.bench(subject) as bench:
        bench.set_training(False)
        quiet = bench.loss(_parts(kept))
        assert quiet == pytest.approx(losses[0], rel=0.2), "but for the dropout"
        other = _parts(kept, target=torch.roll(kept.train[0].parts.target, 1, 1))
        assert bench.loss(other) != quiet, "the target is what the loss inside compares with"
        (answered,) = bench.outputs(_parts(kept))
        assert answered.shape[-1] == IDS


def _parts(kept: Kept, target: Any = None) -> Parts:
    parts = kept.train[0].parts
    wanted = parts.target if target is None else target
    return Parts(parts.inputs, wanted, (parts.inputs, wanted))


def test_a_loss_that_something_else_goes_into_is_let_alone() -> None:
    """What it was multiplied with differs from step to step, and nothing tells by what."""
    kept, _ = kept_of(lambda m, x, y: m(x, y)[1] * (x.float().mean() + 1))
    assert not kept.at_start
    assert kept.remarks

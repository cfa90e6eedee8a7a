"""What an instrument must leave as it was, to the last bit."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.material import digits


@contextmanager
def left_as_it_was(model: nn.Module, *others) -> Iterator[None]:
    """`others`: optimisers, and generators of loaders."""
    before = _state(model, others)
    yield
    after = _state(model, others)
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert _same(value, after[name]), f"{name} was changed"


def _state(model: nn.Module, others) -> dict:
    state = {f"parameter {n}": p.detach().clone() for n, p in model.named_parameters()}
    state |= {f"gradient {n}": None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}
    state |= {f"buffer {n}": b.clone() for n, b in model.named_buffers()}
    state |= {f"mode {n}": m.training for n, m in model.named_modules()}
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    state |= {f"{kind} {n}": len(getattr(m, kind)) for n, m in model.named_modules() for kind in kinds}
    state |= {f"attributes {n}": sorted(vars(m)) for n, m in model.named_modules()}
    for i, other in enumerate(others):
        state[f"other {i}"] = other.get_state() if isinstance(other, torch.Generator) else _flat(other.state_dict())
    return state | {"torch": torch.get_rng_state(), "numpy": repr(np.random.get_state()), "python": random.getstate()}


def _flat(tree) -> str:
    """Every bit of a state dict, as text."""
    return repr(torch.utils._pytree.tree_map(lambda t: t.numpy().tobytes() if isinstance(t, torch.Tensor) else t, tree))


def _same(a, b) -> bool:
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


class Various(nn.Module):
    """Batch normalisation, dropout, an LSTM that returns tuples, one ReLU object used twice, inputs by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.rnn = nn.LSTM(8, 12, batch_first=True)
        self.hidden = nn.Linear(12, 16)
        self.act = nn.ReLU()
        self.middle = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 10)

    def forward(self, rows: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.norm(rows.reshape(-1, 8, 8).transpose(1, 2)).transpose(1, 2)
        _, (h, _) = self.rnn(x * scale[:, None, None])
        x = self.act(self.hidden(h[-1]))
        return {"scores": self.head(self.drop(self.act(self.middle(x))))}


def various() -> tuple[Various, list[dict[str, torch.Tensor]], dict]:
    """Model, batches as mappings, and what the instruments are given beside them; trained for a step, so that there is state."""
    torch.manual_seed(0)
    model = Various()
    x, y = (torch.as_tensor(a[:96]) for a in digits())
    batches = [{"rows": x[i : i + 32], "scale": torch.ones(32), "label": y[i : i + 32]} for i in (0, 32, 64)]

    def loss(output: dict[str, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output["scores"], target)

    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    loss(model(rows=batches[0]["rows"], scale=batches[0]["scale"]), batches[0]["label"]).backward()
    optimiser.step()
    return model, batches, {"loss": loss, "optimizer": optimiser}


def digit_loader(batch_size: int = 64) -> tuple[DataLoader, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(*(torch.as_tensor(a) for a in digits()))
    return DataLoader(data, batch_size, shuffle=True, generator=generator), generator


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])

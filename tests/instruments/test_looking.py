"""Whatever looks at a model leaves it, and everything around it, as it was to the last bit."""

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from tests.instruments.models import Block, Layer

IMAGES = torch.linspace(0, 1, 3 * 64).reshape(3, 1, 8, 8)


class Net(nn.Module):
    """Running statistics, dropout, in-place activation, a part in eval mode, a frozen part, attention, a counter and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(1, 4)
        self.drop = nn.Dropout(0.5)
        self.layer = Layer(8, 2)
        self.head = nn.Linear(4 * 64, 10)
        self.calls = 0
        self.seen: list[int] = []
        self.block.bn1.eval()
        self.layer.qkv.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(len(x))
        maps = self.drop(self.block(x))
        rows = self.layer(maps.flatten(0, 1))
        return self.head(rows.reshape(len(x), -1))


class Uncopyable(Net):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


LOOKS: dict[str, Callable[[Any], Any]] = {
    "summary": lambda m: sleuth.summary(m, IMAGES, time=True),
    "graph": lambda m: sleuth.graph(m, IMAGES),
    "trace": lambda m: sleuth.trace(m, IMAGES),
    "failing trace": lambda m: sleuth.trace(m, (2, 3, 8, 8)),
    "try_component": lambda m: sleuth.try_component(m, IMAGES),
    "filters": lambda m: sleuth.filters(m),
    "feature_maps": lambda m: sleuth.feature_maps(m, IMAGES),
    "gradcam": lambda m: sleuth.gradcam(m, IMAGES),
    "attention": lambda m: sleuth.attention(m, IMAGES),
}


def state(model: Net) -> dict[str, Any]:
    tensors = {n: t.detach().clone() for n, t in (*model.named_parameters(), *model.named_buffers())}
    gradients = {n: None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}
    modules = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()]
    flags = [p.requires_grad for p in model.parameters()]
    switches = (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled(), torch.is_grad_enabled())
    randoms = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state())
    attributes = (model.calls, list(model.seen), model.block.relu.inplace)
    return {**tensors, **gradients, "rest": (modules, flags, switches, attributes), "random": randoms, "input": IMAGES.clone()}


@pytest.mark.parametrize("kind", [Net, Uncopyable])
@pytest.mark.parametrize("name", LOOKS)
def test_a_look_changes_nothing(name: str, kind: type[Net]) -> None:
    model = kind()
    model(IMAGES).sum().backward()
    before, identities = state(model), [id(p.grad) for p in model.parameters()]
    LOOKS[name](model)
    torch.testing.assert_close(state(model), before, rtol=0, atol=0)
    assert [id(p.grad) for p in model.parameters()] == identities


def test_a_look_at_a_loader_does_not_move_its_order() -> None:
    def loader() -> DataLoader:
        return DataLoader(TensorDataset(torch.arange(64.0)[:, None]), 8, shuffle=True)

    model = nn.Linear(1, 1)
    torch.manual_seed(3)
    expected = [batch[0] for batch in loader()]
    torch.manual_seed(3)
    looked = loader()
    sleuth.show_batch(looked)
    sleuth.summary(model, looked)
    assert all(torch.equal(a[0], b) for a, b in zip(looked, expected, strict=True))


def test_models_of_a_framework_that_cannot_be_looked_at_say_so() -> None:
    class Written:
        parameters: tuple[Any, ...] = ()

        def forward(self, x: np.ndarray) -> np.ndarray:
            return x

    with pytest.raises(sleuth.UnusableInput, match="models of numpy have no attention that can be seen"):
        sleuth.attention(Written(), (2, 3))

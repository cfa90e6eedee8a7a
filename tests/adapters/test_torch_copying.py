"""A copy of a model stands on its own, whatever functions the model keeps."""

from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.copying import deep_copy


class Keeps(nn.Module):
    """In the ways that people write it."""

    def __init__(self) -> None:
        super().__init__()
        first, self.second, self.third, self.fourth = (nn.Linear(3, 3) for _ in range(4))
        self.first = first
        self.by_closure = lambda x: first(x)
        self.by_default = lambda x, layer=self.second: layer(x)
        self.in_a_list = [lambda x: self.third(x)]
        self.fifth = nn.Linear(3, 3)
        self.fourth.register_forward_hook(lambda module, given, made: self.fifth(made))

    def forward(self, x: torch.Tensor) -> Any:
        return self.fourth(self.in_a_list[0](self.by_default(self.by_closure(x))))


def test_a_copy_computes_with_its_own_layers() -> None:
    torch.manual_seed(0)
    model, x = Keeps(), torch.randn(2, 3)
    before = model(x)
    copied, alone = deep_copy((model, None))
    assert alone is None
    assert torch.equal(copied(x), before)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(copied(x), before)
    copied(x).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    assert all(p.grad is not None for p in copied.parameters())


def test_functions_that_hold_nothing_of_the_model_stay_the_users() -> None:
    model = nn.Linear(2, 2)
    model.scale = lambda x, by=3: x * by  # type: ignore[assignment]
    assert deep_copy(model).scale is model.scale

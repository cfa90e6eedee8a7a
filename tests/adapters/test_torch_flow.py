"""The flow of one forward pass, as torch tells it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sleuth.adapters import adapter_for
from sleuth.core.errors import Unsupported
from sleuth.core.reading.flow import reshaped
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Flow


class Net(nn.Module):
    def __init__(self, run: Callable[..., Tensor]) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.w = nn.Parameter(torch.randn(8, 8))
        self.register_buffer("fixed", torch.randn(8, 8))
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def flow_of(run: Callable[..., Tensor], step: Callable[..., Tensor] | None = None) -> Flow:
    subject = Subject(Net(run), None, nn.MSELoss() if step is None else None, step=step)
    adapter = adapter_for(subject.model)
    x = torch.randn(7, 5, 8)
    with adapter.bench(subject) as bench:
        return adapter.flow(bench, Parts(x, None, [x]))


def families(flow: Flow) -> list[str]:
    return [operation.family for operation in flow.operations]


def source(flow: Flow, layer: str) -> str:
    """The name of what feeds this layer."""
    (at,) = next(o for o in flow.operations if o.layer == layer).sources
    return flow.operations[at].name


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda m, x: m.a(x), ["input", "linear"]),
        (lambda m, x: x @ m.w, ["input", "linear"]),
        (lambda m, x: x @ (m.w * 2 + m.fixed), ["input", "linear"]),
        (lambda m, x: x @ m.fixed, ["input", "other"]),
        (lambda m, x: x @ x.mT, ["input", "reshape", "product"]),
        (lambda m, x: 1 - 2 * m.a(x) / 3, ["input", "linear", "scale", "scale", "scale"]),
        (lambda m, x: 1 / m.a(x), ["input", "linear", "other"]),
        (lambda m, x: x + m.a(x), ["input", "linear", "sum"]),
        (lambda m, x: x * x, ["input", "product"]),
        (lambda m, x: x + torch.randn_like(x), ["input", "input", "sum"]),
        (lambda m, x: x + torch.ones_like(x), ["input", "scale"]),
        (lambda m, x: F.softmax(x.mean(1), -1), ["input", "average", "softmax"]),
        (lambda m, x: x.detach(), ["input", "other"]),
    ],
)
def test_operations_have_the_family_of_what_they_do(run: Callable[..., Tensor], expected: list[str]) -> None:
    found = families(flow_of(run))
    assert [f for f in found if f != "other"] == [f for f in expected if f != "other"]
    assert ("other" in found) == ("other" in expected)


def test_a_product_knows_its_sides_and_its_parameters() -> None:
    right, left = (flow_of(run).operations[-1] for run in (lambda m, x: x @ m.w[:, :3], lambda m, x: m.w[:3] @ x.mT))
    assert (right.settings["in"], right.settings["out"], right.settings["axis"]) == (8, 3, 2)
    assert (left.settings["in"], left.settings["out"], left.settings["axis"]) == (8, 3, 1)
    assert right.parameters == left.parameters == ("w",)


def test_writing_into_a_view_is_writing_into_the_tensor() -> None:
    def run(m: Net, x: Tensor) -> Tensor:
        h = m.a(x).clone()
        h.view(-1).relu_()
        return m.b(h)

    assert source(flow_of(run), "b") == "relu_"


def test_assigning_to_a_part_counts_as_an_operation() -> None:
    def run(m: Net, x: Tensor) -> Tensor:
        h = m.a(x).clone()
        h[..., 0] = 0
        return m.b(h)

    assert source(flow_of(run), "b") == "__setitem__"


def test_what_torch_does_not_tell_is_an_operation_of_unknown_kind() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.as_tensor(x.detach().numpy() * 2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    flow = flow_of(lambda m, x: m.b(Twice.apply(m.a(x))))
    assert source(flow, "b") == "unseen"


def test_axes_are_followed_through_moves_and_cuts() -> None:
    moves = {
        (lambda m, x: x.transpose(0, 1)): ((1,), (0,), (2,)),
        (lambda m, x: x.permute(2, 0, 1)): ((2,), (0,), (1,)),
        (lambda m, x: x[:, -1]): ((0,), (2,)),
        (lambda m, x: x[:, None]): ((0,), (), (1,), (2,)),
        (lambda m, x: x.chunk(2, 1)[0]): ((0,), (), (2,)),
        (lambda m, x: x.flatten(1)): ((0,), (1, 2)),
        (lambda m, x: x.mean(dim=1)): ((0,), (2,)),
        (lambda m, x: x.view(7, 5, 2, 4)): ((0,), (1,), (2,), (2,)),
    }
    for run, axes in moves.items():
        assert flow_of(run).operations[1].axes == axes


def test_what_leaves_a_part_that_the_loop_calls_by_itself_is_said() -> None:
    def step(model: Net, batch: list[Tensor]) -> Tensor:
        return model.b(model.a(batch[0])).mean()

    flow = flow_of(lambda m, x: x, step)
    assert [o.layer for o in flow.operations if o.leaves] == ["a", "b"]
    assert flow.outputs == ()


def test_a_pass_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.adapters.torch.flow.MOST_OPERATIONS", 20)
    with pytest.raises(Unsupported, match="more than 20 operations"):
        flow_of(lambda m, x: [x := x + 1 for _ in range(50)][-1])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_a_reshape_maps_each_axis_to_the_axes_it_is_made_of(before: list[int], draw: st.DataObject) -> None:
    """Merging neighbours: along an axis that is kept alone, the values of the old axis are found again."""
    groups = draw.draw(st.lists(st.integers(1, len(before)), min_size=1, max_size=len(before)))
    after, at = [], 0
    for size in groups:
        if at < len(before):
            after.append(int(np.prod(before[at : at + size])))
            at += size
    after += before[at:]
    axes = reshaped(before, after)
    assert axes is not None
    for new, sources in enumerate(axes):
        if len(sources) == 1 and before[sources[0]] == after[new] > 1:
            shape = [1] * len(before)
            shape[sources[0]] = -1
            index = np.broadcast_to(np.arange(after[new]).reshape(shape), before).reshape(after)
            assert np.array_equal(np.moveaxis(index, new, 0).reshape(after[new], -1)[:, 0], np.arange(after[new]))

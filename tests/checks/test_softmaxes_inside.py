"""Softmaxes inside a model, as gates and as weights of an attention: over one unit, over the samples, and as they should be."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sleuth.core.finding import Finding
from sleuth.core.stage import Severity
from sleuth.core.subject import Subject
from tests.checks.looking import BASIS, look_with, training

ONE, AXIS = "single-unit-softmax", "softmax-wrong-axis"


class Rows(nn.Module):
    """The eight rows of a digit, and a way to make one answer of them."""

    def __init__(self, pool: Callable[..., Tensor]) -> None:
        super().__init__()
        self.lift, self.score, self.head = nn.Linear(8, 24), nn.Linear(24, 1), nn.Linear(24, 10)
        self.heads, self.gate = nn.Linear(24, 4), nn.Linear(64, 1)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.pool(self, self.lift(x.reshape(-1, 8, 8)))))


def found(pool: Callable[..., Tensor], subject: Subject | None = None) -> list[Finding]:
    torch.manual_seed(0)
    subject = subject or training(Rows(pool))
    return list(look_with(BASIS | {"flowing"}, subject, ONE, AXIS).findings)


def masked(m: Rows, h: Tensor, axis: int) -> Tensor:
    empty = (h.abs().sum(-1, keepdim=True) < 0).expand(-1, -1, 1)
    return (F.softmax(m.score(h).masked_fill(empty, -1e9), axis).transpose(1, 2) @ h)[:, 0]


def gated(m: Rows, h: Tensor) -> Tensor:
    gate = m.score(h.mean(1)).softmax(-1)
    return gate * h.amax(1) + (1 - gate) * h.mean(1)


@pytest.mark.parametrize(
    "pool",
    [
        lambda m, h: (m.score(h).softmax(-1) * h).sum(1),
        lambda m, h: masked(m, h, -1),
        gated,
    ],
)
def test_weights_of_a_single_unit_are_always_one(pool: Callable[..., Tensor]) -> None:
    (finding,) = found(pool)
    assert finding.name == ONE
    assert finding.severity is Severity.WARNING
    assert finding.location is not None
    assert "softmax" in finding.location.text


def test_a_mixture_of_one_component_is_only_hinted_at() -> None:
    (finding,) = found(lambda m, h: m.score(h.mean(1)).softmax(-1) * h.mean(1))
    assert finding.name == ONE
    assert finding.severity is Severity.HINT


@pytest.mark.parametrize(
    "pool",
    [
        lambda m, h: (torch.softmax(m.score(h), dim=0) * h).sum(1),
        lambda m, h: torch.einsum("bt,bth->bh", F.softmax(m.score(h).squeeze(-1), 0), h),
        lambda m, h: (F.softmax(m.heads(h), dim=0)[..., :1] * h).mean(1),
    ],
)
def test_weights_that_sum_to_one_over_the_samples_are_named(pool: Callable[..., Tensor]) -> None:
    (finding,) = found(pool)
    assert finding.name == AXIS
    assert finding.location is not None
    assert "softmax" in finding.location.text


@pytest.mark.parametrize(
    "pool",
    [
        lambda m, h: (m.score(h).softmax(1) * h).sum(1),
        lambda m, h: masked(m, h, 1),
        lambda m, h: (h @ h.mT / 5).softmax(-1).matmul(h).mean(1),
        lambda m, h: (m.heads(h).softmax(-1).mT @ h).mean(1),
        lambda m, h: torch.sigmoid(m.score(h.mean(1))) * h.mean(1),
        # Each sample looks at the others on purpose.
        lambda m, h: (h.mean(1) @ h.mean(1).T / 5).softmax(-1) @ h.mean(1),
        # Attention to a single memory.
        lambda m, h: ((h @ h.mean(1, keepdim=True).mT).softmax(-1) @ h.mean(1, keepdim=True)).sum(1),
    ],
)
def test_attention_as_it_should_be_is_no_finding(pool: Callable[..., Tensor]) -> None:
    assert not found(pool)


def test_members_of_a_bag_may_compete() -> None:
    """One bag a batch: what looks like samples is summed over."""

    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lift, self.score, self.head = nn.Linear(64, 16), nn.Linear(16, 3), nn.Linear(48, 10)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.tanh(self.lift(x))
            return self.head((self.score(h).softmax(0).T @ h).reshape(1, -1))

    torch.manual_seed(0)
    subject = training(Bag(), lambda out, y: F.cross_entropy(out, y[:1]))
    assert not found(np.mean, subject)

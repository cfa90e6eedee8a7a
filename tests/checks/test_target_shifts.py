"""targets-not-shifted, targets-shifted-twice: language models, and what only looks like one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth.core.subject import Subject
from tests.cases.model.future_leaks import LETTERS, windows
from tests.checks.looking import BASIS, Look, look_with
from tests.checks.test_future_leaks import Attention, Letters, Recurrent, batches

NAMES = "targets-not-shifted", "targets-shifted-twice"
IDS = torch.as_tensor(windows()[0])


def judged(model: nn.Module, x: Any, y: Any, loss: Callable[..., Any]) -> Look:
    return look_with({*BASIS, "target_shift", "causality"}, Subject(model, batches(x, y), loss), *NAMES)


def flat(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return fn.cross_entropy(scores.flatten(0, 1), y.flatten())


def cut(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return flat(scores[:, :-1], y[:, 1:])


def cut_wrong(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return flat(scores[:, 1:], y[:, :-1])


class Shifting(Recurrent):
    """Puts a start token in front of what it is given, by itself."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(fn.pad(ids, (1, 0))[:, :-1])


class Squeezing(Letters):
    """All letters through one code, and back."""

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.mean(1, keepdim=True) + self.places.weight[: x.shape[1]])


class Alone(Letters):
    """Each letter for itself, as in a table of pairs."""

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        return x


@pytest.mark.parametrize("model", [Recurrent, lambda: Attention(1), Alone])
def test_letters_that_are_asked_for_where_they_are_given_are_told(model: Callable[[], nn.Module]) -> None:
    found = judged(model(), IDS, IDS, flat).one()
    assert found.name == "targets-not-shifted"
    assert found.numbers["same"] == 1.0


def test_a_shift_in_the_data_and_one_in_the_loss_are_told() -> None:
    found = judged(Recurrent(), *windows(), cut).one()
    assert found.name == "targets-shifted-twice"
    assert found.numbers["shift"] == 2
    assert "handed over 1 ahead" in found.summary


def test_a_shift_to_the_wrong_side_is_told() -> None:
    found = judged(Recurrent(), IDS, IDS, cut_wrong).one()
    assert (found.name, found.numbers["shift"]) == ("targets-shifted-twice", -1)


@pytest.mark.parametrize("loss", [flat, lambda scores, y: fn.cross_entropy(scores.transpose(1, 2), y)])
def test_the_next_letter_is_right_however_it_is_laid_out(loss: Callable[..., Any]) -> None:
    seen = judged(Recurrent(), *windows(), loss)
    assert not seen.findings
    assert not seen.not_examined


def test_the_letters_themselves_are_right_where_the_loss_shifts() -> None:
    seen = judged(Recurrent(), IDS, IDS, cut)
    assert not seen.findings
    assert not seen.not_examined


@pytest.mark.parametrize("model", [lambda: Attention(None), lambda: Recurrent(both=True), Squeezing, Shifting])
def test_who_sees_all_letters_or_not_its_own_may_give_them_back(model: Callable[[], nn.Module]) -> None:
    assert not judged(model(), IDS, IDS, flat).findings


def test_filled_in_letters_tags_and_reversed_ones_are_left_alone() -> None:
    hidden = torch.rand(IDS.shape, generator=torch.Generator().manual_seed(0)) < 0.15
    masked = IDS.where(~hidden, 0)
    only = IDS.where(hidden, -100)
    for x, y in ((masked, only), (masked, IDS), (IDS, IDS % 3), (IDS, IDS.flip(1)), (IDS, (IDS + 1) % len(LETTERS))):
        assert not judged(Recurrent(), x, y, flat).findings


def test_a_loss_that_is_written_out_is_not_followed() -> None:
    def by_hand(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return -scores.log_softmax(-1)[:, :-1].gather(2, y[:, 1:, None]).mean()

    seen = judged(Recurrent(), IDS, IDS, by_hand)
    assert not seen.findings
    assert set(seen.not_examined) == set(NAMES)


class TimeFirst(nn.Module):
    """Reads (positions, samples), as torch's own recurrent layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(len(LETTERS), 16), nn.GRU(16, 16), nn.Linear(16, len(LETTERS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embedding(ids))[0]).flatten(0, 1)


@pytest.mark.parametrize(("ahead", "names"), [(1, []), (2, ["targets-shifted-twice"])])
def test_positions_on_the_first_axis_are_followed_and_no_samples_that_mix(ahead: int, names: list[str]) -> None:
    text = torch.cat((IDS, IDS.roll(1, 0)), 1).T[:, :40]
    data = [(text[i : i + 12], text[i + ahead : i + ahead + 12].reshape(-1)) for i in range(4)]
    subject = Subject(TimeFirst(), data, fn.cross_entropy)
    assert (
        look_with({*BASIS, "target_shift", "causality", "dependence", "flowing"}, subject, *NAMES, "samples-mix").names == names
    )

"""future-leaks: models that see what they must predict, and models that only look as if they might."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth.core.subject import Subject
from tests.cases.model.future_leaks import CONTEXT, LETTERS, windows
from tests.checks.looking import BASIS, Look, look_with


def judged(subject: Subject) -> Look:
    return look_with({*BASIS, "causality"}, subject, "future-leaks")


def per_letter(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return fn.cross_entropy(scores.flatten(0, 1), y.flatten(), ignore_index=-100)


def batches(*arrays: np.ndarray) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(torch.as_tensor(a[i : i + 32]) for a in arrays) for i in range(0, 320, 32)]


class Letters(nn.Module):
    """An embedding, something between, and a score for each letter."""

    def __init__(self, width: int = 24, **parts: nn.Module) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(len(LETTERS), 24), nn.Embedding(CONTEXT, 24)
        for name, part in parts.items():
            self.add_module(name, part)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.mix(self.embedding(ids) + self.places(torch.arange(ids.shape[1]))))


class Recurrent(Letters):
    def __init__(self, both: bool = False) -> None:
        super().__init__(48 if both else 24, rnn=nn.LSTM(24, 24, batch_first=True, bidirectional=both))

    def mix(self, x):
        return self.rnn(x)[0]


class Convolution(Letters):
    def __init__(self, left: int) -> None:
        super().__init__(conv=nn.Conv1d(24, 24, 3))
        self.left = left

    def mix(self, x):
        return torch.relu(self.conv(fn.pad(x.transpose(1, 2), (self.left, 2 - self.left)))).transpose(1, 2)


class Attention(Letters):
    """`first` is the first diagonal that is hidden: 1 is right, 2 shows the very next letter."""

    def __init__(self, first: int | None) -> None:
        super().__init__(qkv=nn.Linear(24, 72))
        self.first = first

    def mix(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / 24**0.5
        if self.first is not None:
            hidden = torch.ones(x.shape[1], x.shape[1]).triu(self.first).bool()
            scores = scores.masked_fill(hidden, float("-inf"))
        return x + scores.softmax(-1) @ v


class Encoder(Letters):
    def __init__(self, causal: bool) -> None:
        layer = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True)
        super().__init__(body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
        self.causal = causal

    def mix(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.body(x, mask=mask, is_causal=self.causal)


class Averaged(Letters):
    """The mean over all positions is added: a normalisation over time leaks as well as attention does."""

    def mix(self, x):
        return x - x.mean(1, keepdim=True)


class RunningMean(Letters):
    def mix(self, x):
        return x - x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


SICK = {
    "both directions": lambda: Recurrent(both=True),
    "padded on both sides": lambda: Convolution(left=1),
    "padded on the wrong side": lambda: Convolution(left=0),
    "no mask": lambda: Attention(None),
    "a mask one letter off": lambda: Attention(2),
    "encoder": lambda: Encoder(causal=False),
    "mean over time": Averaged,
}
HEALTHY = {
    "recurrent": Recurrent,
    "padded on the left": lambda: Convolution(left=2),
    "mask": lambda: Attention(1),
    "encoder": lambda: Encoder(causal=True),
    "running mean": RunningMean,
}


@pytest.mark.parametrize("name", SICK)
def test_a_model_that_sees_the_next_letter_is_accused(name: str) -> None:
    (found,) = judged(Subject(SICK[name](), batches(*windows()), per_letter)).findings
    assert found.name == "future-leaks"
    assert found.numbers["leaking"] >= 1


@pytest.mark.parametrize("name", HEALTHY)
def test_a_causal_model_is_clear(name: str) -> None:
    judgement = judged(Subject(HEALTHY[name](), batches(*windows()), per_letter))
    assert not judgement.findings
    assert not judgement.not_examined


def test_a_mask_one_letter_off_is_told_by_its_reach() -> None:
    (found,) = judged(Subject(Attention(2), batches(*windows()), per_letter)).findings
    assert "from 1 ahead on" in found.summary


class Padded(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.inner(ids) * mask[..., None]


def test_a_padding_mask_beside_the_letters_does_not_stop_the_look() -> None:
    x, y = windows()
    lengths = np.random.default_rng(0).integers(6, CONTEXT + 1, len(x))
    kept = np.arange(CONTEXT) < lengths[:, None]
    data = batches(x * kept, kept.astype(np.float32), np.where(kept, y, -100))
    assert judged(Subject(Padded(Attention(None)), data, per_letter)).findings
    judgement = judged(Subject(Padded(Attention(1)), data, per_letter))
    assert not judgement.findings
    assert not judgement.not_examined


def test_a_forecast_of_real_values_is_examined() -> None:
    class Forecast(nn.Module):
        def __init__(self, both: bool) -> None:
            super().__init__()
            self.rnn = nn.GRU(2, 16, batch_first=True, bidirectional=both)
            self.head = nn.Linear(32 if both else 16, 2)

        def forward(self, x):
            return self.head(self.rnn(x)[0])

    time = np.arange(17) * 0.3 + np.random.default_rng(0).uniform(0, 6, (320, 1))
    waves = np.stack([np.sin(time), np.cos(2 * time)], axis=2).astype(np.float32)
    data = batches(waves[:, :-1], waves[:, 1:])
    assert judged(Subject(Forecast(both=True), data, nn.MSELoss())).findings
    assert not judged(Subject(Forecast(both=False), data, nn.MSELoss())).findings


def test_tagging_filling_in_and_copying_need_no_causality() -> None:
    x, _ = windows()
    for y in (x, x % 3, x[:, ::-1].copy()):
        judgement = judged(Subject(Attention(None), batches(x, y), per_letter))
        assert not judgement.findings
        assert "shifted by one" in judgement.not_examined["future-leaks"]


def test_dice_in_evaluation_mode_are_no_leak() -> None:
    class Noisy(Recurrent):
        def mix(self, x):
            return super().mix(x + 0.1 * torch.randn_like(x))

    assert not judged(Subject(Noisy(), batches(*windows()), per_letter)).findings

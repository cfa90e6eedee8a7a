"""padding-counts-in-loss: signals, and ends that are real."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.checks.padded_material import LENGTH, WORDS, Tagger, judge, loader, sentences
from tests.material import digit_images, digits


def recordings(shortest: int = 8, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Signals of three channels (n, 24, 3), zero behind their end, and their smoothed sum (n, 24, 1), zero there too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(320, 24, 3))
    y = np.tanh(x.sum(-1, keepdims=True))
    real = (np.arange(24) < rng.integers(shortest, 25, (320, 1)))[..., None]
    return np.where(real, x, 0).astype(np.float32), np.where(real, y, 0).astype(np.float32)


class Follower(nn.Module):
    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.head = nn.Linear(16, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(x)[0])


def test_regression_over_padded_signals_is_named() -> None:
    finding = judge(Follower(), loader(*recordings()), nn.MSELoss()).finding
    assert finding is not None
    assert "mask" in finding.fix
    x, _ = recordings()
    assert judge(Follower(3), loader(x, x), nn.MSELoss()).finding


def test_regression_that_masks_is_clear() -> None:
    def masked_error(output: Tensor, target: Tensor) -> Tensor:
        real = (target != 0).float()
        return ((output - target).square() * real).sum() / real.sum()

    assert judge(Follower(), loader(*recordings()), masked_error).is_clear


def test_signals_with_channels_first_are_read_along_their_length() -> None:
    x, y = recordings()
    model = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 1, 3, padding=1), nn.Flatten())
    assert judge(model, loader(x.transpose(0, 2, 1).copy(), y[..., 0]), nn.MSELoss()).finding


def outages() -> tuple[np.ndarray, np.ndarray]:
    """A few recordings really end in zeros; the others are as long as they are."""
    x, y = recordings(shortest=24)
    x[:12, -6:], y[:12, -6:] = 0, 0
    return x, y


def long_outages() -> tuple[np.ndarray, np.ndarray]:
    """Every seventh recording breaks off early, each at its own time."""
    x, y = recordings(shortest=24)
    for row in range(0, len(x), 7):
        x[row, 2 + row % 5 :], y[row, 2 + row % 5 :] = 0, 0
    return x, y


def rain() -> tuple[np.ndarray, np.ndarray]:
    """Zero most of the time, at the end too."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((320, 24, 1)) < 0.2, rng.random((320, 24, 1)), 0) * np.ones(3)
    return x.astype(np.float32), x[..., :1].astype(np.float32)


def masked_future() -> tuple[np.ndarray, np.ndarray]:
    """The end of the inputs is blanked on purpose: it is what the model shall fill in."""
    x, _ = recordings(shortest=24)
    blank = (np.arange(24) >= np.random.default_rng(1).integers(12, 22, (320, 1)))[..., None]
    return np.where(blank, 0, x).astype(np.float32), x[..., :1].copy()


def survival() -> tuple[np.ndarray, np.ndarray]:
    """Once ill, always ill: the target ends in ones, but the inputs go on."""
    x, _ = recordings(shortest=24)
    return x, (np.arange(24) >= np.random.default_rng(1).integers(4, 40, (320, 1))).astype(np.float32)[..., None]


@pytest.mark.parametrize("make", [outages, long_outages, rain, masked_future, survival, lambda: recordings(shortest=24)])
def test_ends_that_are_real_are_clear(make: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
    verdict = judge(Follower(), loader(*make()), nn.MSELoss())
    assert verdict.is_clear, verdict


def test_a_target_that_nearly_all_positions_have_says_nothing_about_padding() -> None:
    ids, _ = sentences()
    assert judge(Tagger("first"), loader(ids, np.where(ids == 7, 1, 0) * (ids % 2)), nn.CrossEntropyLoss()).finding
    rare = np.zeros_like(ids)
    rare[0, 0] = 1
    assert judge(Tagger("first"), loader(ids, rare), nn.CrossEntropyLoss()).is_clear


def test_a_closing_formula_of_one_length_is_clear() -> None:
    ids, tags = sentences(LENGTH)
    ids[::2, -4:], tags[::2, -4:] = 0, 0
    assert judge(Tagger("first"), loader(ids, tags), nn.CrossEntropyLoss()).is_clear


def test_a_switch_that_stays_on_is_clear() -> None:
    rng = np.random.default_rng(0)
    on = (np.arange(LENGTH) >= rng.integers(3, LENGTH + 1, (320, 1))).astype(np.int64)
    assert judge(Tagger("first"), loader(on, np.where(on, 2, rng.integers(0, 2, on.shape))), nn.CrossEntropyLoss()).is_clear


def test_curves_that_reach_their_end_are_clear() -> None:
    rng = np.random.default_rng(0)
    curve = np.minimum(np.cumsum(rng.random((320, 24)), axis=1) / rng.uniform(6, 14, (320, 1)), 1).astype(np.float32)
    assert judge(nn.Linear(24, 24), loader(curve, curve**2), nn.MSELoss()).is_clear


def test_a_frequent_tag_in_sentences_of_one_length_is_clear() -> None:
    ids, _ = sentences(LENGTH)
    tags = np.where(np.random.default_rng(0).random(ids.shape) < 0.85, 0, 1 + ids % 4)
    assert judge(Tagger("first"), loader(ids, tags), nn.CrossEntropyLoss()).is_clear


def test_images_segmentation_and_classes_have_nothing_to_pad() -> None:
    x, y = digit_images()
    one = nn.Conv2d(1, 2, 3, padding=1)
    classes = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    assert judge(one, loader(x, (x[:, 0] > 0.4).astype(np.int64)), nn.CrossEntropyLoss()).is_clear
    assert judge(classes, loader(x, y), nn.CrossEntropyLoss()).is_clear
    assert judge(nn.Linear(64, 64), loader(digits()[0], digits()[0]), nn.MSELoss()).is_clear
    rows = x[:, 0]
    assert judge(nn.Linear(8, 8), loader(rows, rows), nn.MSELoss()).is_clear
    centred = np.pad(rows, ((0, 0), (3, 3), (0, 0)))
    shifted = np.stack(
        [np.roll(image, shift, axis=0) for image, shift in zip(centred, np.arange(len(rows)) % 7 - 3, strict=True)]
    )
    assert judge(nn.Linear(8, 8), loader(shifted, shifted), nn.MSELoss()).is_clear


def test_little_padding_is_not_worth_a_word() -> None:
    assert judge(Tagger("first"), loader(*sentences(LENGTH - 2)), nn.CrossEntropyLoss()).is_clear


def test_padded_sentences_with_one_class_each_are_clear() -> None:
    ids, _ = sentences()
    model = nn.Sequential(nn.Embedding(WORDS, 8), nn.Flatten(), nn.Linear(8 * LENGTH, 2))
    assert judge(model, loader(ids, (ids[:, 0] > 15).astype(np.int64)), nn.CrossEntropyLoss()).is_clear


def test_the_model_is_left_as_it_was() -> None:
    model = Tagger("first")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    judge(model, loader(*sentences()), nn.CrossEntropyLoss())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model._forward_hooks

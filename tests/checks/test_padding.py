"""padding-counts-in-loss: padding that the loss counts is named; masks of every kind and ends that are real are not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.padding_counts_in_loss import padding_counts_in_loss
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.trial import Padding
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.padding import padding
from tests.material import digit_images, digits

Batch = tuple[Tensor, ...]
WORDS, TAGS, LENGTH = 30, 5, 12


@dataclass(frozen=True)
class Verdict:
    finding: Finding | None
    reason: str | None
    trial: Padding | None

    @property
    def is_clear(self) -> bool:
        return self.finding is None and self.reason is None


def judge(model: nn.Module, train: Any, loss: Any = None, **options: Any) -> Verdict:
    subject = Subject(model, train, loss, torch.optim.Adam(model.parameters()), **options)
    lab, engine = Lab(subject, ADAPTER, 60.0), Engine([padding_counts_in_loss])
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        lab.bench_ = bench
        run_probe(reading, lab, engine.emit)
        run_probe(padding, lab, engine.emit)
    judged = engine.judge()
    name = "padding-counts-in-loss"
    return Verdict(next(iter(judged.findings), None), judged.not_examined.get(name), engine.history.single(Padding))


def loader(*arrays: np.ndarray, batch_size: int = 32) -> DataLoader:
    return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), batch_size=batch_size, shuffle=True)


def sentences(shortest: int = 3, filler: int = 0, side: str = "right", count: int = 320) -> tuple[np.ndarray, np.ndarray]:
    """Word ids and a tag for each word; `filler` is the tag of padding, and the id of padding is 0."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1, WORDS, (count, LENGTH))
    tags = 1 + ids % (TAGS - 1)
    empty = np.arange(LENGTH) >= rng.integers(shortest, LENGTH + 1, (count, 1))
    empty = empty if side == "right" else empty[:, ::-1]
    return np.where(empty, 0, ids), np.where(empty, filler, tags)


class Tagger(nn.Module):
    def __init__(self, layout: str = "last", packed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 8, padding_idx=0)
        self.gru = nn.GRU(8, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, TAGS)
        self.layout, self.packed = layout, packed

    def forward(self, ids: Tensor) -> Any:
        hidden = self.embedding(ids)
        if self.packed:
            lengths = (ids != 0).sum(1).clamp(min=1)
            rows = pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
            hidden = pad_packed_sequence(self.gru(rows)[0], batch_first=True, total_length=ids.shape[1])[0]
        else:
            hidden = self.gru(hidden)[0]
        scores = self.head(hidden)
        match self.layout:
            case "first":
                return scores.transpose(1, 2)
            case "flat":
                return scores.flatten(0, 1)
            case "time":
                return scores.transpose(0, 1)
            case "dict":
                return {"hidden": hidden.mean(1), "logits": scores}
        return scores


def flattened(scores: Tensor, tags: Tensor) -> Tensor:
    return cross_entropy(scores.flatten(0, 1), tags.flatten())


def turned(scores: Tensor, tags: Tensor) -> Tensor:
    return cross_entropy(scores.transpose(1, 2), tags)


def by_hand(scores: Tensor, tags: Tensor) -> Tensor:
    return -scores.log_softmax(-1).gather(2, tags[..., None]).mean()


def in_time(scores: Tensor, tags: Tensor) -> Tensor:
    return cross_entropy(scores.flatten(0, 1), tags.T.flatten())


COUNTED: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "flattened": ("last", flattened),
    "turned": ("last", turned),
    "by hand": ("last", by_hand),
    "classes first": ("first", nn.CrossEntropyLoss()),
    "flat output": ("flat", lambda s, t: cross_entropy(s, t.flatten())),
    "time first": ("time", in_time),
    "dict": ("dict", lambda o, t: flattened(o["logits"], t)),
    "label smoothing": ("first", nn.CrossEntropyLoss(label_smoothing=0.1)),
    "other index ignored": ("first", nn.CrossEntropyLoss(ignore_index=3)),
    "summed": ("first", nn.CrossEntropyLoss(reduction="sum")),
}


@pytest.mark.parametrize(("layout", "loss"), COUNTED.values(), ids=COUNTED.keys())
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_that_the_loss_counts_is_named(layout: str, loss: Callable[..., Tensor], side: str) -> None:
    finding = judge(Tagger(layout), loader(*sentences(side=side)), loss).finding
    assert finding is not None
    assert finding.numbers["share"] == pytest.approx(0.4, abs=0.08)
    assert "ignore_index=0" in finding.fix


def masked(scores: Tensor, tags: Tensor) -> Tensor:
    real = (tags != 0).float()
    each = cross_entropy(scores.transpose(1, 2), tags, reduction="none")
    return (each * real).sum() / real.sum()


def selected(scores: Tensor, tags: Tensor) -> Tensor:
    return cross_entropy(scores[tags != 0], tags[tags != 0])


def row_by_row(scores: Tensor, tags: Tensor) -> Tensor:
    rows = [cross_entropy(s[t != 0], t[t != 0]) for s, t in zip(scores, tags, strict=True)]
    return torch.stack(rows).mean()


SKIPPED: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "ignore_index": ("first", nn.CrossEntropyLoss(ignore_index=0)),
    "ignore_index with smoothing": ("first", nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)),
    "weight zero": ("first", nn.CrossEntropyLoss(weight=torch.tensor([0.0, 1, 1, 1, 1]))),
    "mask": ("last", masked),
    "selected": ("last", selected),
    "row by row": ("last", row_by_row),
    "small penalty on all outputs": ("last", lambda s, t: masked(s, t) + 1e-3 * s.square().mean()),
}


@pytest.mark.parametrize(("layout", "loss"), SKIPPED.values(), ids=SKIPPED.keys())
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_that_the_loss_skips_is_clear(layout: str, loss: Callable[..., Tensor], side: str) -> None:
    verdict = judge(Tagger(layout), loader(*sentences(side=side)), loss)
    assert verdict.is_clear, verdict
    assert verdict.trial is not None
    assert verdict.trial.padded > 1000


def test_targets_padded_with_minus_a_hundred_are_skipped() -> None:
    assert judge(Tagger("first"), loader(*sentences(filler=-100)), nn.CrossEntropyLoss()).is_clear


def test_a_mask_made_of_the_inputs_is_seen_through_a_step() -> None:
    def step(model: nn.Module, batch: Batch) -> Tensor:
        ids, tags = batch
        each = cross_entropy(model(ids).transpose(1, 2), tags, reduction="none")
        return each[ids != 0].mean()

    assert judge(Tagger(), loader(*sentences()), step=step).is_clear
    assert judge(Tagger(), loader(*sentences()), step=lambda model, batch: flattened(model(batch[0]), batch[1])).finding


def test_packed_sequences_do_not_save_a_loss_that_counts_padding() -> None:
    assert judge(Tagger("first", packed=True), loader(*sentences()), nn.CrossEntropyLoss(ignore_index=0)).is_clear
    assert judge(Tagger("first", packed=True), loader(*sentences()), nn.CrossEntropyLoss()).finding


def test_a_filler_that_is_also_a_real_tag_asks_for_another_filler() -> None:
    finding = judge(Tagger("first"), loader(*sentences(filler=1)), nn.CrossEntropyLoss()).finding
    assert finding is not None
    assert "Pad targets with -100" in finding.fix


def test_batches_padded_to_their_own_longest_sample_are_read_together() -> None:
    ids, tags = sentences()
    rows = np.argsort((ids != 0).sum(1), kind="stable").reshape(-1, 32)
    batches = [(ids[r], tags[r]) for r in np.random.default_rng(0).permutation(ids.size // LENGTH).reshape(-1, 32)]
    cut = [(torch.as_tensor(i[:, : (i != 0).sum(1).max()]), torch.as_tensor(t[:, : (i != 0).sum(1).max()])) for i, t in batches]
    assert judge(Tagger("first"), cut, nn.CrossEntropyLoss()).finding
    sorted_by_length = [
        (torch.as_tensor(ids[r][:, :n]), torch.as_tensor(tags[r][:, :n])) for r in rows for n in [(ids[r] != 0).sum(1).max()]
    ]
    assert judge(Tagger("first"), sorted_by_length, nn.CrossEntropyLoss()).is_clear


def test_as_many_samples_as_positions_are_told_apart() -> None:
    data = loader(*sentences(), batch_size=LENGTH)
    assert judge(Tagger("first"), data, nn.CrossEntropyLoss()).finding
    assert judge(Tagger("first"), data, nn.CrossEntropyLoss(ignore_index=0)).is_clear


def test_data_with_time_first_are_read_by_columns() -> None:
    ids, tags = sentences()
    batches = [
        (torch.as_tensor(i.T.copy()), torch.as_tensor(t.T.copy()))
        for i, t in zip(np.split(ids, 10), np.split(tags, 10), strict=True)
    ]

    class TimeFirst(Tagger):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids.T).transpose(0, 1)

    assert judge(TimeFirst(), batches, flattened).finding
    assert judge(TimeFirst(), batches, lambda s, t: cross_entropy(s.flatten(0, 1), t.flatten(), ignore_index=0)).is_clear


class NextWord(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 2, 16)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, WORDS + 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.gru(self.embedding(ids))[0])


def with_end_marks(shortest: int) -> np.ndarray:
    """Sentences that end in 30 once; what is left of them is 0."""
    ids = sentences(shortest)[0]
    lengths = (ids != 0).sum(1)
    longer = np.concatenate([ids, np.zeros((len(ids), 1), np.int64)], axis=1)
    longer[np.arange(len(ids)), lengths] = WORDS
    return longer


def test_a_language_model_that_learns_padding_is_named_and_one_that_skips_it_is_clear() -> None:
    longer = with_end_marks(3)
    data = loader(longer[:, :-1], longer[:, 1:])
    assert judge(NextWord(), data, flattened).finding
    assert judge(NextWord(), data, lambda s, t: cross_entropy(s.flatten(0, 1), t.flatten(), ignore_index=0)).is_clear


def test_an_end_mark_once_a_sentence_is_no_padding() -> None:
    longer = with_end_marks(LENGTH)
    verdict = judge(NextWord(), loader(longer[:, :-1], longer[:, 1:]), flattened)
    assert verdict.is_clear
    assert verdict.trial is not None
    assert verdict.trial.padded == 0


class Translator(nn.Module):
    """Reads the source into a state and is told the target's words as it goes."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, 16, padding_idx=0)
        self.reader, self.writer = nn.GRU(16, 32, batch_first=True), nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, WORDS + 1)

    def forward(self, source: Tensor, words: Tensor) -> Tensor:
        _, state = self.reader(self.embedding(source))
        return self.head(self.writer(self.embedding(words), state)[0])


@pytest.mark.parametrize("skips", [False, True])
def test_translation_is_judged_by_the_id_that_pads_both_sides(skips: bool) -> None:
    source = sentences()[0]
    target = np.concatenate([np.full((len(source), 1), WORDS), sentences(4)[0][::-1]], axis=1)

    def step(model: nn.Module, batch: Batch) -> Tensor:
        scores = model(batch[0], batch[1][:, :-1])
        return cross_entropy(scores.flatten(0, 1), batch[1][:, 1:].flatten(), ignore_index=0 if skips else -100)

    verdict = judge(Translator(), loader(source, target), step=step, split=lambda batch: (batch[0], batch[1]))
    assert (verdict.finding is None) == skips, verdict
    assert verdict.reason is None


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

"""padding-counts-in-loss: padding that the loss counts is named; masks of every kind and ends that are real are not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.checks.padded_material import LENGTH, WORDS, Tagger, judge, loader, sentences

Batch = tuple[Tensor, ...]


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

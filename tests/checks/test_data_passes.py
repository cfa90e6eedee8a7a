"""validation-not-deterministic: what differs from pass to pass."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from sleuth import Subject
from sleuth.adapters.numpy import ADAPTER as NUMPY
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.validation_not_deterministic import validation_not_deterministic
from sleuth.core.contract.adapter import Adapter
from sleuth.core.engine import Engine, Judgement
from sleuth.core.stage import Confidence, Severity
from sleuth.probes.data.reading import reading
from sleuth.probes.data.second_pass import second_pass
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from tests.checks.passes_material import X, Y

PLAIN = TensorDataset(X, Y)


class Changed(Dataset):
    """Digits that something happens to whenever one is read."""

    def __init__(self, change: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
        self.change = change

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.change(X[i], i), Y[i]


def noisy(x: torch.Tensor, i: int) -> torch.Tensor:
    return x + 0.05 * torch.randn(64)


def sometimes_flipped(x: torch.Tensor, i: int) -> torch.Tensor:
    return x.flip(0) if random.random() < 0.1 else x


def validate(validation: Any, adapter: Adapter = ADAPTER, **parts: Any) -> Judgement:
    train = (X.numpy(), Y.numpy())
    subject = Subject(nn.Linear(64, 10), train, validation=validation, **parts)
    lab, engine = Lab(subject, adapter, 60.0), Engine([validation_not_deterministic])
    run_probe(reading, lab, engine.emit)
    run_probe(second_pass, lab, engine.emit)
    return engine.judge()


class Again:
    """An iterable of batches that are made anew at each pass."""

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        yield from self.make()


def shuffled(drop: int = 0) -> list[Any]:
    rows = torch.randperm(300)[: 300 - drop]
    return [(X[some], Y[some]) for some in rows.split(50)]


RANDOM = {
    "noise": DataLoader(Changed(noisy), batch_size=50),
    "a flip now and then": DataLoader(Changed(sometimes_flipped), batch_size=50),
    "noise in a data set": Changed(noisy),
    "a part of an augmented set": DataLoader(random_split(Changed(noisy), [200, 100])[1], batch_size=50),
    "noise in collation": DataLoader(PLAIN, batch_size=50, collate_fn=lambda s: (torch.rand(len(s), 64), torch.zeros(len(s)))),
}


DRAWN = {
    "drawn with replacement": DataLoader(PLAIN, batch_size=50, sampler=RandomSampler(PLAIN, replacement=True)),
    "drawn by weight": DataLoader(PLAIN, batch_size=50, sampler=WeightedRandomSampler(torch.rand(300), 300)),
    "shuffled and cut off": DataLoader(PLAIN, batch_size=64, shuffle=True, drop_last=True),
    "a random part": DataLoader(PLAIN, batch_size=50, sampler=RandomSampler(PLAIN, num_samples=100)),
    "an iterable that leaves some out": Again(lambda: shuffled(drop=30)),
    "an iterable with noise": Again(lambda: [(x + 0.05 * torch.randn_like(x), y) for x, y in shuffled()]),
}


SAME = {
    "in order": DataLoader(PLAIN, batch_size=50),
    "shuffled": DataLoader(PLAIN, batch_size=64, shuffle=True),
    "cut off in order": DataLoader(PLAIN, batch_size=64, drop_last=True),
    "workers": DataLoader(PLAIN, batch_size=50, num_workers=2),
    "a subset": DataLoader(Subset(PLAIN, range(7, 90)), batch_size=50, shuffle=True),
    "noise that belongs to the sample": DataLoader(
        Changed(lambda x, i: x + torch.randn(64, generator=torch.Generator().manual_seed(i))), batch_size=50
    ),
    "a list": [(X[:50], Y[:50]), (X[50:80], Y[50:80])],
    "arrays": (X, Y),
    "an iterable in another order": Again(shuffled),
    "noise below half precision": DataLoader(Changed(lambda x, i: x * (1 + 1e-7 * random.random())), batch_size=50),
}


@pytest.mark.parametrize("validation", RANDOM.values(), ids=RANDOM)
def test_samples_that_change_from_pass_to_pass_are_certain(validation: Any) -> None:
    found = validate(validation).findings[0]
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.CERTAIN)
    assert "read a second time" in found.summary
    assert found.numbers["changed"] <= found.numbers["compared"] < found.numbers["total"]
    assert not found.numbers["complete"]


@pytest.mark.parametrize("validation", DRAWN.values(), ids=DRAWN)
def test_another_part_of_the_set_at_each_pass_is_certain(validation: Any) -> None:
    found = validate(validation).findings[0]
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.CERTAIN)
    assert "do not come in another" in found.summary


@pytest.mark.parametrize("validation", SAME.values(), ids=SAME)
def test_the_same_samples_in_any_order_are_clear(validation: Any) -> None:
    assert validate(validation).clear == ("validation-not-deterministic",)


def test_numpy_iterables_are_compared_too() -> None:
    noise = Again(lambda: [(X.numpy() + np.random.rand(), Y.numpy())])
    assert validate(noise, NUMPY).findings
    assert validate((X.numpy(), Y.numpy()), NUMPY).clear


def test_a_handful_of_a_large_set_that_is_cut_off_after_shuffling_is_no_matter() -> None:
    x = torch.randn(4010, 4)
    assert validate(DataLoader(TensorDataset(x, x[:, 0]), batch_size=100, shuffle=True, drop_last=True)).clear


def test_padding_to_the_longest_of_a_shuffled_batch_is_not_taken_for_a_change() -> None:
    words = [torch.arange(1, 3 + i % 9) for i in range(120)]

    def pad(samples: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.utils.rnn.pad_sequence(samples, batch_first=True), torch.zeros(len(samples))

    class Words(Dataset):
        def __len__(self) -> int:
            return len(words)

        def __getitem__(self, i: int) -> torch.Tensor:
            return torch.cat([words[i], torch.tensor([i])])

    loader = DataLoader(Words(), batch_size=7, shuffle=True, collate_fn=pad)
    assert validate(loader).clear
    assert "padded" in validate(Again(lambda: list(loader))).not_examined["validation-not-deterministic"]


def masked() -> list[Any]:
    ids = torch.randint(5, 50, (60, 12), generator=torch.Generator().manual_seed(0))
    hidden = torch.rand(ids.shape) < 0.15
    return [(torch.where(hidden, 1, ids), torch.where(hidden, ids, -100))]


def views() -> list[Any]:
    return [(X + 0.1 * torch.randn_like(X), X + 0.1 * torch.randn_like(X))]


@pytest.mark.parametrize(
    ("validation", "parts"),
    [
        (Again(masked), {}),
        (Again(lambda: [X + 0.1 * torch.randn_like(X)]), {}),
        (Again(views), {"step": lambda model, batch: model(batch[0]).mean()}),
    ],
    ids=["masked words", "no target", "two views"],
)
def test_randomness_that_is_the_task_itself_is_not_judged(validation: Any, parts: dict[str, Any]) -> None:
    assert "two passes differ, but" in validate(validation, **parts).not_examined["validation-not-deterministic"]


def test_a_stream_without_an_end_in_random_order_is_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.reading.MOST_UNSIZED_BATCHES", 20)

    class Endless:
        def __iter__(self) -> Iterator[Any]:
            while True:
                rows = torch.randint(0, 300, (20,))
                yield X[rows], Y[rows]

    assert "only a part" in validate(Endless()).not_examined["validation-not-deterministic"]


def test_reading_twice_leaves_the_users_random_states_alone() -> None:
    generator = torch.Generator().manual_seed(1)
    loader = DataLoader(Changed(noisy), batch_size=50, shuffle=True, generator=generator)
    subject = Subject(nn.Linear(64, 10), [(X, Y)], validation=loader)
    before, own = torch.get_rng_state(), generator.get_state()
    lab = Lab(subject, ADAPTER, 60.0)
    with ADAPTER.preserve(subject):
        list(reading.run(lab))
        list(second_pass.run(lab))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(own, generator.get_state())

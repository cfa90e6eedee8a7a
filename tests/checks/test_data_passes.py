"""validation-not-deterministic and workers-repeat-augmentation: what differs, and what repeats, from pass to pass."""

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)

from sleuth import Subject
from sleuth.adapters.numpy import ADAPTER as NUMPY
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.validation_not_deterministic import validation_not_deterministic
from sleuth.checks.data.workers_repeat_augmentation import workers_repeat_augmentation
from sleuth.core.contract.adapter import Adapter
from sleuth.core.engine import Engine, Judgement
from sleuth.core.stage import Confidence, Severity
from sleuth.core.trial import WorkerNoise
from sleuth.probes.data.reading import reading
from sleuth.probes.data.sample_order import order
from sleuth.probes.data.second_pass import second_pass
from sleuth.probes.data.worker_noise import worker_noise
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from tests.material import digits

X, Y = (torch.as_tensor(a[:300]) for a in digits())
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


class Augmented(Dataset):
    """Digits with noise of different origin."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.numpy = np.random.default_rng(0)
        self.torch = torch.Generator().manual_seed(0)
        self.python = random.Random(0)

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return getattr(self, f"_{self.origin}")(X[i]), Y[i]

    def _plain(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def _own_numpy(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.as_tensor(self.numpy.normal(0, 0.1, 64).astype(np.float32))

    def _own_torch(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.randn(64, generator=self.torch)

    def _own_flip(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0) if self.python.random() < 0.5 else x

    def _own_noise_and_a_free_flip(self, x: torch.Tensor) -> torch.Tensor:
        return self._own_numpy(x).flip(0) if random.random() < 0.5 else self._own_numpy(x)

    def _global_numpy(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.as_tensor(np.random.normal(0, 0.1, 64).astype(np.float32))

    def _global_torch(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.randn(64)

    def _global_flip(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0) if random.random() < 0.5 else x

    def _rare(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0) if self.python.random() < 0.02 else x


def work(train: Any, adapter: Adapter = ADAPTER) -> Judgement:
    subject = Subject(nn.Linear(64, 10), train)
    lab, engine = Lab(subject, adapter, 60.0), Engine([workers_repeat_augmentation])
    with ADAPTER.preserve(subject):
        for probe in (reading, order, worker_noise):
            run_probe(probe, lab, engine.emit)
    assert not multiprocessing.active_children(), "a worker was left behind"
    return engine.judge()


def crew(origin: str, workers: int = 2, **options: Any) -> DataLoader:
    return DataLoader(Augmented(origin), **{"batch_size": 50, "shuffle": True, "num_workers": workers, **options})


def seed_all_alike(worker: int) -> None:
    np.random.seed(7)


def seed_by_number(worker: int) -> None:
    np.random.seed(7 + worker)


def seed_by_torch(worker: int) -> None:
    np.random.seed(torch.initial_seed() % 2**32)


REPEATING = {
    "a NumPy generator in the data set": crew("own_numpy"),
    "a torch generator in the data set": crew("own_torch"),
    "flips of a generator in the data set": crew("own_flip"),
    "one shared source beside a free one": crew("own_noise_and_a_free_flip"),
    "one seed for all workers": crew("global_numpy", worker_init_fn=seed_all_alike),
    "workers that live on": crew("own_numpy", persistent_workers=True),
}
HONEST = {
    "torch": crew("global_torch"),
    "numpy": crew("global_numpy"),
    "flips": crew("global_flip"),
    "seeded from torch": crew("global_numpy", worker_init_fn=seed_by_torch),
    "seeded once, living on": crew("global_numpy", worker_init_fn=seed_by_number, persistent_workers=True),
    "no augmentation": crew("plain"),
    "no workers": crew("own_numpy", workers=0),
    "one worker": crew("global_torch", workers=1),
    "a subset": DataLoader(Subset(Augmented("global_torch"), range(90)), batch_size=50, num_workers=2),
}


@pytest.mark.parametrize("loader", REPEATING.values(), ids=REPEATING)
def test_workers_that_share_a_random_state_are_certain(loader: DataLoader) -> None:
    found = work(loader).findings[0]
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.CERTAIN)
    assert "two of 2 workers" in found.summary
    assert found.numbers["alike_across"] > found.numbers["alike_within"]


@pytest.mark.parametrize("loader", HONEST.values(), ids=HONEST)
def test_workers_that_draw_for_themselves_are_clear(loader: DataLoader) -> None:
    assert work(loader).clear == ("workers-repeat-augmentation",)


def test_epochs_that_start_alike_are_a_hint_when_shuffled_and_a_warning_in_fixed_order() -> None:
    for shuffle, severity in ((True, Severity.HINT), (False, Severity.WARNING)):
        found = work(crew("global_numpy", shuffle=shuffle, worker_init_fn=seed_by_number)).findings[0]
        assert found.severity is severity
        assert "persistent_workers=True" in found.fix


def test_augmentation_that_hardly_ever_acts_cannot_be_compared() -> None:
    engine = Engine([workers_repeat_augmentation])
    engine.emit(WorkerNoise(workers=2, tried=2, comparisons=80, alike_within=0.97, alike_across=1.0, alike_epochs=1.0))
    assert "too few" in engine.judge().not_examined["workers-repeat-augmentation"]


def test_workers_that_agree_less_than_one_does_with_itself_are_clear() -> None:
    engine = Engine([workers_repeat_augmentation])
    engine.emit(WorkerNoise(workers=2, tried=2, comparisons=400, alike_within=0.9, alike_across=0.3, alike_epochs=0.3))
    assert engine.judge().clear


class Stream(IterableDataset):
    def __init__(self, how: str) -> None:
        self.how = how

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        rows = {
            "shared": lambda: range(info.id, 300, info.num_workers),
            "shuffled whole": lambda: np.random.permutation(300),
            "random": lambda: np.random.randint(0, 10**9, 200),
            "seeded alike": lambda: np.random.default_rng(0).integers(0, 10**9, 200),
        }.get(self.how, lambda: range(300))()
        for i in map(int, rows):
            if i < 300:
                yield self._change(X[i]), X[i].sum() if self.how == "noisy whole" else Y[i]
            else:
                yield torch.randn(64, generator=torch.Generator().manual_seed(i)), torch.tensor(i % 10)

    def _change(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.randn(64) if self.how == "noisy whole" else x


@pytest.mark.parametrize("how", ["whole", "shuffled whole", "noisy whole", "seeded alike"])
def test_a_stream_that_every_worker_reads_in_full_is_found(how: str) -> None:
    found = work(DataLoader(Stream(how), batch_size=25, num_workers=2)).findings[0]
    assert found.severity is Severity.WARNING
    assert "get_worker_info" in found.fix


@pytest.mark.parametrize("how", ["shared", "random"])
def test_a_stream_that_is_shared_out_or_drawn_anew_is_clear(how: str) -> None:
    assert work(DataLoader(Stream(how), batch_size=25, num_workers=2)).clear


def test_plain_iterables_have_no_workers_that_are_known() -> None:
    assert "workers are known" in work([(X, Y)]).not_examined["workers-repeat-augmentation"]
    assert "workers are known" in work([(X.numpy(), Y.numpy())], NUMPY).not_examined["workers-repeat-augmentation"]


def test_a_worker_that_hangs_is_given_up_and_goes() -> None:
    class Hanging(Augmented):
        def __getitem__(self, i: int) -> Any:
            if get_worker_info() is not None:
                time.sleep(60)
            return super().__getitem__(i)

    found = ADAPTER.crew(DataLoader(Hanging("plain"), batch_size=50, num_workers=1))
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out"):
        found.read([[0, 1]], 1, 1, 1.0)
    assert time.monotonic() - began < 30
    assert not multiprocessing.active_children()


def test_workers_that_live_on_are_left_where_they_stand() -> None:
    loader = crew("global_torch", persistent_workers=True)
    next(iter(loader))
    mine = loader._iterator
    pids = [w.pid for w in mine._workers]
    subject = Subject(nn.Linear(64, 10), loader, validation=loader)
    with ADAPTER.preserve(subject):
        list(reading.run(Lab(subject, ADAPTER, 60.0)))
        assert loader._iterator is not mine
    assert loader._iterator is mine
    assert [w.pid for w in mine._workers if w.is_alive()] == pids
    assert len(multiprocessing.active_children()) == 2
    mine._shutdown_workers()

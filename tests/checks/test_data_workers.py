"""workers-repeat-augmentation: what repeats from worker to worker."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    get_worker_info,
)

from sleuth import Subject
from sleuth.adapters.numpy import ADAPTER as NUMPY
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.workers_repeat_augmentation import workers_repeat_augmentation
from sleuth.core.contract.adapter import Adapter
from sleuth.core.engine import Engine, Judgement
from sleuth.core.stage import Confidence, Severity
from sleuth.core.trial import WorkerNoise
from sleuth.probes.data.reading import reading
from sleuth.probes.data.sample_order import order
from sleuth.probes.data.worker_noise import worker_noise
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from tests.checks.passes_material import X, Y


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

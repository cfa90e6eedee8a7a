"""The worker processes of a DataLoader: tried as a crew of their own, and those that live on kept out of it."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from sleuth.core.contract.adapter import Crew
from sleuth.core.errors import Unsupported


def crew(source: Any) -> Crew | None:
    if not isinstance(source, DataLoader):
        return None

    def read(orders: Sequence[Sequence[int]] | int, workers: int, epochs: int, seconds: float) -> list[list[Any]]:
        until = time.monotonic() + seconds
        loader = _copy(source, orders, workers, seconds)
        return [_epoch(loader, orders, until, last=epoch + 1 == epochs) for epoch in range(epochs)]

    stream = isinstance(source.dataset, IterableDataset)
    samples = 0 if stream else len(source.dataset)  # type: ignore[arg-type]
    return Crew(source.num_workers, samples, stream, bool(source.persistent_workers), read)


@contextmanager
def workers_kept(*sources: Any) -> Iterator[None]:
    """Workers that live on from epoch to epoch are left where they stand: for the time being a loader has none."""
    loaders = {id(source): source for source in sources if isinstance(source, DataLoader)}
    held = {key: loader._iterator for key, loader in loaders.items()}
    try:
        for loader in loaders.values():
            loader._iterator = None
        yield
    finally:
        for loader, iterator in zip(loaders.values(), held.values(), strict=True):
            _dismiss(loader._iterator)
            loader._iterator = iterator


def _copy(source: DataLoader[Any], orders: Sequence[Sequence[int]] | int, workers: int, seconds: float) -> DataLoader[Any]:
    """The same data set, collation and start of workers. What they read is ours, and so is the generator of their seeds,
    which differ from epoch to epoch as they would in training."""
    options: dict[str, Any] = {
        "num_workers": workers,
        "collate_fn": source.collate_fn,
        "timeout": seconds,
        "worker_init_fn": source.worker_init_fn,
        "multiprocessing_context": source.multiprocessing_context,
        "persistent_workers": source.persistent_workers,
        "generator": torch.Generator().manual_seed(0),
    }
    if isinstance(orders, int):
        return DataLoader(source.dataset, batch_size=source.batch_size, drop_last=source.drop_last, **options)
    if source.batch_sampler is None:  # the data set gives whole batches: a position is one
        return DataLoader(source.dataset, batch_size=None, sampler=[order[0] for order in orders], **options)
    return DataLoader(source.dataset, batch_sampler=[list(order) for order in orders], **options)


def _epoch(loader: DataLoader[Any], orders: Sequence[Sequence[int]] | int, until: float, last: bool) -> list[Any]:
    iterator, batches = None, []
    done = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            iterator = iter(loader)
            for batch in islice(iterator, orders if isinstance(orders, int) else None):
                batches.append(batch)
                if time.monotonic() > until:
                    raise Unsupported("the loader's workers are too slow to be tried")
        done = True
        return batches
    finally:
        # Workers that live on must do so until the last epoch; all others go now, also when one of them hangs.
        if last or not done or not loader.persistent_workers:
            _dismiss(iterator)


def _dismiss(iterator: Any) -> None:
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()

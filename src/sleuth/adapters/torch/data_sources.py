"""Data sources that only PyTorch knows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)

from sleuth.core.contract.adapter import Rows


def batches(source: Any, batch_size: int) -> Iterable[Any] | None:
    """A Dataset, batched in its own order; None for anything else (a DataLoader gives batches by itself)."""
    if isinstance(source, DataLoader) or not isinstance(source, Dataset):
        return None
    if isinstance(source, IterableDataset):
        return DataLoader(source, batch_size=batch_size)
    return DataLoader(source, batch_size=min(batch_size, max(len(source), 1)), shuffle=False)  # type: ignore[arg-type]


def rows(source: Any) -> Rows | None:
    """The data set below a loader, batched by the loader's own collate function. A Subset is looked through: drawing it
    at random hides the order in which inputs and targets were once put together."""
    outer = dataset = source.dataset if isinstance(source, DataLoader) else source
    collate = source.collate_fn if isinstance(source, DataLoader) else default_collate
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    if not isinstance(source, Dataset | DataLoader) or isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        return None
    if isinstance(source, DataLoader) and source.batch_size is None and source.batch_sampler is None:
        return None  # its samples are batches already

    bulk = type(dataset) is TensorDataset and collate is default_collate

    def take(positions: np.ndarray) -> Any:
        if bulk:
            return [tensor[positions] for tensor in dataset.tensors]  # type: ignore[union-attr]
        return collate([dataset[int(position)] for position in positions])

    return Rows(len(dataset), take, bulk, whole=outer is dataset and _draws_all(source))  # type: ignore[arg-type]


def _draws_all(source: Any) -> bool:
    sampler = source.sampler if isinstance(source, DataLoader) else None
    if isinstance(sampler, RandomSampler):
        return not sampler.replacement and len(sampler) == len(sampler.data_source)
    return sampler is None or isinstance(sampler, SequentialSampler)

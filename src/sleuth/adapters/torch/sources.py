"""Data sources that only PyTorch knows."""

from collections.abc import Iterable
from typing import Any

from torch.utils.data import DataLoader, Dataset, IterableDataset


def batches(source: Any, batch_size: int) -> Iterable[Any] | None:
    """A Dataset, batched in its own order; None for anything else (a DataLoader gives batches by itself)."""
    if isinstance(source, DataLoader) or not isinstance(source, Dataset):
        return None
    if isinstance(source, IterableDataset):
        return DataLoader(source, batch_size=batch_size)
    return DataLoader(source, batch_size=min(batch_size, max(len(source), 1)), shuffle=False)  # type: ignore[arg-type]

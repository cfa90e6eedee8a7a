"""Loaders for the zoo, as careful users write them."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def loader(*arrays: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> DataLoader:
    return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), batch_size=batch_size, shuffle=shuffle)


def split_loaders(*arrays: np.ndarray, batch_size: int = 32) -> tuple[DataLoader, DataLoader]:
    """A random four fifths for training, the rest for validation."""
    order = np.random.default_rng(0).permutation(len(arrays[0]))
    cut = len(order) * 4 // 5
    train, validation = ([a[rows] for a in arrays] for rows in (order[:cut], order[cut:]))
    return loader(*train, batch_size=batch_size), loader(*validation, batch_size=64, shuffle=False)

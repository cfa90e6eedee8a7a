"""Data sets of pictures, made from scikit-learn's digits."""

from collections.abc import Callable
from typing import Any

import torch
import wild_digits
from PIL import Image
from torch.utils.data import Dataset


class _Pictures(Dataset):  # type: ignore[type-arg]
    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        self.data, self.targets = self._read(train)

    def _read(self, train: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture: Any = Image.fromarray(self.data[index] if not torch.is_tensor(self.data) else self.data[index].numpy())
        target: Any = int(self.targets[index])
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, target if self.target_transform is None else self.target_transform(target)


class MNIST(_Pictures):
    def _read(self, train: bool) -> tuple[Any, Any]:
        pictures, targets = wild_digits.mnist(train)
        return torch.from_numpy(pictures), torch.from_numpy(targets)


class CIFAR10(_Pictures):
    def _read(self, train: bool) -> tuple[Any, Any]:
        pictures, targets = wild_digits.coloured(train)
        return pictures, targets.tolist()

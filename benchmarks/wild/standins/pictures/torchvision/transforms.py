"""Transforms of pictures, with torch's random numbers as torchvision has them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    def __call__(self, picture: Any) -> torch.Tensor:
        values = np.array(picture, dtype=np.float32) / 255
        return torch.from_numpy(values[None] if values.ndim == 2 else values.transpose(2, 0, 1).copy())


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)

    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        return (picture - self.mean) / self.std


class Resize:
    def __init__(self, size: int | Sequence[int], *_: Any) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, picture: Any) -> Any:
        return picture.resize(self.size, Image.Resampling.BILINEAR)


class RandomHorizontalFlip:
    def __call__(self, picture: Any) -> Any:
        return ImageOps.mirror(picture) if torch.rand(1).item() < 0.5 else picture


class RandomCrop:
    def __init__(self, size: int, padding: int = 0) -> None:
        self.size, self.padding = size, padding

    def __call__(self, picture: Any) -> Any:
        padded = ImageOps.expand(picture, self.padding)
        left, top = (int(torch.randint(0, side - self.size + 1, (1,))) for side in padded.size)
        return padded.crop((left, top, left + self.size, top + self.size))

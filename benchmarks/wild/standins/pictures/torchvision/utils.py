"""Pictures that scripts save: nobody looks at them here."""

from pathlib import Path
from typing import Any

import torch


def make_grid(tensor: Any, *_: Any, **__: Any) -> torch.Tensor:
    return torch.as_tensor(tensor)[0]


def save_image(tensor: Any, path: Any, *_: Any, **__: Any) -> None:
    Path(path).write_bytes(b"")

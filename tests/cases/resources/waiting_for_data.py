"""Digits that lie as compressed text: each is unpacked and parsed whenever it is asked for, or all of them once."""

import zlib
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 2
SAMPLES = 1024


def sick(kit: Kit) -> Loop:
    return _loop(kit, parses_each_time=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, parses_each_time=False)


def _loop(kit: Kit, parses_each_time: bool) -> Loop:
    kit.require("torch")
    import torch
    from torch.utils.data import DataLoader, Dataset

    x, y = (a[:SAMPLES] for a in digits())
    packed = [zlib.compress(" ".join(f"{v:.9f}" for v in np.repeat(row, 160)).encode()) for row in x]

    def parse(text: bytes) -> torch.Tensor:
        return torch.as_tensor(np.array(zlib.decompress(text).split(), dtype=np.float32)[::160])

    class Digits(Dataset):
        def __init__(self) -> None:
            self.parsed = None if parses_each_time else [parse(text) for text in packed]

        def __len__(self) -> int:
            return len(packed)

        def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
            return (parse(packed[i]) if self.parsed is None else self.parsed[i]), int(y[i])

    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, lr=1e-2)
    loader = DataLoader(Digits(), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0))

    def run(w: Any) -> None:
        for _ in range(PASSES):
            for inputs, target in loader:
                optimiser.zero_grad()
                criterion(model(inputs), target).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)

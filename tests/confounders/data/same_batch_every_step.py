"""Whatever step it is, the loader hands out the same batch."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Sampler, TensorDataset

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, waves
from tests.material import digit_images
from tests.zoo.data import loader


class Restarting:
    """Wraps a loader, and begins it anew for each batch."""

    def __init__(self, batches: DataLoader) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[Tensor]]:
        for _ in range(len(self)):
            yield next(iter(self.batches))


class Blocks(Sampler[list[int]]):
    """Forgets to move on."""

    def __init__(self, count: int, size: int) -> None:
        self.order, self.size = np.random.default_rng(0).permutation(count).tolist(), size

    def __len__(self) -> int:
        return len(self.order) // self.size

    def __iter__(self) -> Iterator[list[int]]:
        start = 0
        for _ in range(len(self)):
            yield self.order[start : start + self.size]


class Simulator:
    """Draws fresh noisy samples for each batch, from a generator seeded anew each time."""

    def __len__(self) -> int:
        return 40

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(len(self)):
            generator = torch.Generator().manual_seed(1234)
            x = torch.randn(32, 6, generator=generator)
            yield x, torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]


def cnn_with_a_loader_begun_anew() -> Subject:
    (x, y), held_out = cut(*digit_images())
    model = cnn()
    train, validation = Restarting(loader(x, y, shuffle=False)), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def lstm_with_a_sampler_that_stands_still() -> Subject:
    (x, y), held_out = cut(*waves())
    model = Recurrent(1, 3)
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    train, validation = DataLoader(data, batch_sampler=Blocks(len(x), 32)), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def regression_on_a_reseeded_simulator() -> Subject:
    model = mlp(6, 48, 1)
    return Subject(model, Simulator(), nn.MSELoss(), optim.AdamW(model.parameters(), lr=3e-3))

"""Each worker of the loader draws the same random numbers, so augmentation repeats itself from worker to worker."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, IterableDataset

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut
from tests.material import digit_images, wine
from tests.zoo.data import loader


class NoisyImages(Dataset):
    """Holds a generator, which every worker gets a copy of."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        noise = self.rng.normal(0, 0.2, self.images[i].shape).astype(np.float32)
        return self.images[i] + noise, int(self.labels[i])


class JitteredRows(Dataset):
    """Draws from NumPy's global state."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return 4 * len(self.x)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        row = i % len(self.x)
        return self.x[row] + np.random.normal(0, 0.3, self.x.shape[1]).astype(np.float32), int(self.y[row])


class EndlessWaves(IterableDataset):
    """Simulated recordings; each worker simulates the same ones."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        generator = torch.Generator().manual_seed(7)
        for _ in range(640):
            kind = int(torch.randint(0, 3, (), generator=generator))
            phase, noise = torch.rand((), generator=generator) * 6.28, torch.randn(24, 1, generator=generator)
            wave = torch.sin(torch.arange(24.0) * (0.25, 0.6, 1.1)[kind] + phase)
            yield 1.4 * wave[:, None] + 0.2 * noise, kind


def seed_worker(_: int) -> None:
    """So that runs can be repeated, says the comment it was copied with."""
    np.random.seed(42)


def images_with_a_generator_in_the_dataset() -> Subject:
    (x, y), held_out = cut(*digit_images())
    model = cnn()
    train = DataLoader(NoisyImages(x, y), batch_size=32, shuffle=True, num_workers=2)
    validation = loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def table_with_workers_seeded_alike() -> Subject:
    (x, y), held_out = cut(*wine())
    model = mlp(13, 24, 3)
    train = DataLoader(JitteredRows(x, y), batch_size=16, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
    validation = loader(*held_out, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def simulation_run_once_per_worker() -> Subject:
    model = Recurrent(1, 3)
    train = DataLoader(EndlessWaves(), batch_size=32, num_workers=2)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3))

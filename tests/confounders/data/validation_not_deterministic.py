"""Validation is a different one each time it is run."""

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, friedman, waves
from tests.material import digit_images
from tests.zoo.data import loader


class Augmented(Dataset):
    """Shifts and noise, for training and validation alike."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        shift = int(torch.randint(-1, 2, ()))
        image = torch.roll(self.images[i], shift, dims=-1)
        return image + 0.1 * torch.randn_like(image), self.labels[i]


class RandomCrops(Dataset):
    """Sixteen steps from anywhere in a recording."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        start = np.random.randint(self.x.shape[1] - 16 + 1)
        return self.x[i, start : start + 16], self.y[i]


def images_augmented_in_validation() -> Subject:
    train, held_out = (Augmented(*part) for part in cut(*digit_images()))
    model = cnn()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loaders = DataLoader(train, batch_size=32, shuffle=True), DataLoader(held_out, batch_size=64)
    return Subject(model, loaders[0], nn.CrossEntropyLoss(), optimiser, loaders[1])


def recordings_cropped_at_random() -> Subject:
    train, held_out = (RandomCrops(*part) for part in cut(*waves()))
    model = Recurrent(1, 3)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    loaders = DataLoader(train, batch_size=32, shuffle=True), DataLoader(held_out, batch_size=64)
    return Subject(model, loaders[0], nn.CrossEntropyLoss(), optimiser, loaders[1])


def regression_validated_on_a_draw() -> Subject:
    """A third of the held-out rows, drawn anew at each validation."""
    (x, y), (held_x, held_y) = cut(*friedman())
    data = TensorDataset(torch.from_numpy(held_x), torch.from_numpy(held_y))
    model = mlp(10, 48, 1)
    validation = DataLoader(data, batch_size=32, sampler=RandomSampler(data, num_samples=len(data) // 3))
    return Subject(model, loader(x, y), nn.MSELoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)

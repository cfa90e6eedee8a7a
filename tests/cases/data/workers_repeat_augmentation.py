"""Noisy digits from two worker processes: the noise comes from a generator in the data set, or from torch's own."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return training(kit, own_generator=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, own_generator=False)


def training(kit: Kit, own_generator: bool) -> Subject:
    kit.require("torch")
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Noisy(Dataset):
        def __init__(self) -> None:
            self.x, self.y = (torch.as_tensor(a) for a in digits())
            # Each worker process gets a copy of it, in the same state.
            self.generator = torch.Generator().manual_seed(0) if own_generator else None

        def __len__(self) -> int:
            return len(self.x)

        def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
            noise = torch.randn(64, generator=self.generator)
            return self.x[i] + 0.1 * noise, self.y[i]

    shuffled = torch.Generator().manual_seed(0)
    loader = DataLoader(Noisy(), batch_size=32, shuffle=True, num_workers=2, generator=shuffled)
    model = kit.mlp(64, 64, 10)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))

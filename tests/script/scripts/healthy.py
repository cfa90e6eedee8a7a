import os

os.environ["OMP_NUM_THREADS"] = "1"

import copy
import io

import torch
from material import X, Y, digest
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __len__(self) -> int:
        return 1280

    def __getitem__(self, i: int):
        return X[i], Y[i]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.relu(self.first(x))))


def main() -> None:
    torch.manual_seed(0)
    model = Net()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch, how in enumerate(("fork", "spawn")):
        loader = DataLoader(Digits(), batch_size=64, shuffle=True, num_workers=1, multiprocessing_context=how)
        for x, y in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
        print(epoch, loss.item())
    file = io.BytesIO()
    torch.save(copy.deepcopy(model), file)
    file.seek(0)
    print(type(torch.load(file, weights_only=False)), digest(model), torch.get_num_threads())


if __name__ == "__main__":
    main()

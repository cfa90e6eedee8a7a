"""An LSTM that reads digits row by row: without batch_first it takes the samples for the rows."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, batch_first=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, batch_first=True)


def _training(kit: Kit, batch_first: bool) -> Subject:
    kit.require("torch")
    import torch

    class Reader(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(8, 48, batch_first=batch_first)
            self.head = kit.linear(48, 10)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            states, _ = self.lstm(rows)
            return self.head(states[:, -1])

    x, y = digits()
    model = Reader()
    return Subject(model, kit.loader(x.reshape(-1, 8, 8), y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))

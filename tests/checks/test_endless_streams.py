"""A generator that goes on for ever gives its samples again and again, and that is no fault of the data."""

from collections.abc import Iterator

import torch
from torch import nn

from sleuth import examine
from tests.material import digits

X, Y = (torch.as_tensor(array) for array in digits())


class Endless:
    """Shuffled anew in every round, and without an end."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        generator = torch.Generator().manual_seed(0)
        while True:
            order = torch.randperm(len(X), generator=generator)
            for start in range(0, len(order) - 31, 32):
                yield X[order[start : start + 32]], Y[order[start : start + 32]]


def test_an_endless_stream_over_finite_data_is_healthy() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    report = examine(model, Endless(), loss=nn.CrossEntropyLoss(), optimizer=optimiser, progress=False)
    assert not report.findings, report.to_text()
    assert "stream" in report.not_examined["duplicate-samples"]

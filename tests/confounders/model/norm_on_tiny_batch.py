"""Batch normalisation takes its mean and spread from one or two samples."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.material import cut, friedman, masks
from tests.material import digits
from tests.zoo.data import loader


def classifier_with_pairs() -> Subject:
    """Memory was short, so batches have two samples."""
    model = nn.Sequential(nn.Linear(64, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))
    (x, y), held_out = cut(*digits())
    train, validation = loader(x, y, batch_size=2), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=5e-3, momentum=0.9), validation)


def segmentation_one_by_one() -> Subject:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 1, 1),
    )
    (x, y), held_out = cut(*masks())
    train, validation = loader(x, y, batch_size=1), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)


def regression_with_a_last_batch_of_one() -> Subject:
    """Twenty batches of 32, and one sample left over."""
    model = nn.Sequential(nn.Linear(10, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
    x, y = friedman()
    train, validation = loader(x[:641], y[:641]), loader(x[641:], y[641:], batch_size=64, shuffle=False)
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)

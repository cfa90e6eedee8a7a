"""Factories, right and wrong, for `sleuth examine`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from tests.material import digits


def _parts(**changes):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    data = TensorDataset(torch.as_tensor(x[:256]), torch.as_tensor(y[:256]))
    parts = {
        "model": model,
        "train": DataLoader(data, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0)),
        "loss": nn.CrossEntropyLoss(),
        "optimizer": torch.optim.Adam(model.parameters(), lr=1e-3),
    }
    return {**parts, **changes}


def healthy():
    return _parts()


def subject():
    return sleuth.Subject(**_parts(name="my digits"))


def sick():
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Sigmoid())], nn.Linear(64, 10))
    return _parts(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def talkative():
    print("loading …")
    return _parts()


def raises():
    return open("no-such-data.csv")


def ends():
    raise SystemExit(0)


def wants(path):
    return path


def nothing():
    _parts()


def pair():
    return _parts()["model"], _parts()["train"]


def misspelt():
    return _parts(optimiser=None)


def without_data():
    return {"model": _parts()["model"]}


def foreign_model():
    return _parts(model="resnet18")


def empty_loader():
    return _parts(train=[])


def dropped_loader():
    data = TensorDataset(torch.zeros(3, 64), torch.zeros(3).long())
    return _parts(train=DataLoader(data, batch_size=4, drop_last=True))


def one_shot():
    return _parts(train=iter(_parts()["train"]))


def ragged():
    return _parts(train=[(torch.rand(8, 64), torch.zeros(7).long())] * 3)


def ragged_rows():
    return _parts(train=[(torch.rand(8, 64), torch.zeros(8).long()), (torch.rand(8, 60), torch.zeros(8).long())])


def elsewhere():
    return _parts(model=nn.Linear(64, 10, device="meta"), optimizer=None)


def loss_per_sample():
    return _parts(loss=nn.CrossEntropyLoss(reduction="none"))


def ragged_arrays():
    return _parts(train=(torch.rand(8, 64), torch.zeros(7).long()))


def odd_budget():
    return _parts(budget_seconds="long")


not_a_function = 3

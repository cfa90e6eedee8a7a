import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(5)
d = load_digits()
data = TensorDataset(torch.tensor(d.data / 8 - 1, dtype=torch.float32), torch.tensor(d.target))
train_set, val_set = random_split(data, [1400, 397])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)
model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_set)


for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch >= 5:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f} acc {accuracy(model):.4f}")
update_bn(train_loader, swa_model)
print(f"averaged model acc {accuracy(swa_model):.4f}")

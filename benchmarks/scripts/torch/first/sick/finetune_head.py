import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(15)
bunch = load_digits()
X = torch.tensor(bunch.data, dtype=torch.float32) / 8 - 1
y = torch.tensor(bunch.target)
low = y < 5


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.head = nn.Linear(128, n_classes)

    def forward(self, x):
        return self.head(self.trunk(x))


def split(mask):
    idx = mask.nonzero().squeeze(1)
    idx = idx[torch.randperm(len(idx))]
    cut = int(0.8 * len(idx))
    return idx[:cut], idx[cut:]


def fit(model, train_idx, val_idx, offset, epochs, tag):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(params, lr=3e-3)
    loader = DataLoader(TensorDataset(X[train_idx], y[train_idx] - offset), batch_size=32, shuffle=True)
    for epoch in range(epochs):
        model.train()
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(X[val_idx]).argmax(1) == y[val_idx] - offset).float().mean().item()
        print(f"{tag} epoch {epoch}: loss {loss.item():.4f} val acc {acc:.4f}")


model = Net(5)
fit(model, *split(low), offset=0, epochs=4, tag="pretrain")

model.head = nn.Linear(128, 5)
for name, p in model.named_parameters():
    p.requires_grad = name.endswith("head.bias")
fit(model, *split(~low), offset=5, epochs=10, tag="finetune")
